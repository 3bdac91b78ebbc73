"""What must be true of the assets."""
