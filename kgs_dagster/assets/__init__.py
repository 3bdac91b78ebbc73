"""Assets: the control loop, the lake, experiments."""
