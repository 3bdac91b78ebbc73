"""Records from Kafka to files of a table: fetch, parse, write, open topics, rounds. Errors: see `kgs_core.lake`."""
