"""What every packing algorithm knows: the problem, and the price of a change."""
