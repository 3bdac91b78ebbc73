"""The `kgs` command."""
