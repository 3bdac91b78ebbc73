"""The schema registry: its client, the frame of the values that name a schema of it, and one for tests and demos."""
