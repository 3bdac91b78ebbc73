"""The search packer: annealing over moves, in parts."""
