"""The monitor: how fast every partition is written to."""
