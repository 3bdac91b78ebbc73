"""Records that are parsed again: dead letters that are redriven, values that are audited."""
