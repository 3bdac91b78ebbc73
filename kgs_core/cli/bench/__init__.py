"""Commands that measure: `kgs bench`, `kgs capacity`."""
