"""Delta tables in a store: files, log, commits, statistics, audit, maintenance."""
