"""What producers of change events write, as rows of the table that they follow. Pure: Arrow in, Arrow out."""
