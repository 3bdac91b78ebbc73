"""The lake: what is done with its tables, over the ports of the lake; and those ports by Delta tables."""
