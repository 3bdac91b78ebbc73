"""The flight replay, and what `kgs demo` shows."""
