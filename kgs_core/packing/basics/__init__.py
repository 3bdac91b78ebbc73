"""What every packing algorithm knows: the problem, its arrays, and the price of a change."""
