"""Jobs, a file per purpose."""
