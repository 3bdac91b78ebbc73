"""What Dagster shows as assets: the control loop, and the lake."""
