"""Records from Kafka to files of a table: fetch, parse, write, open topics, rounds. Errors are as in `kgs_core.lake`."""
