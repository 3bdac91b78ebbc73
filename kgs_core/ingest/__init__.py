"""Records from Kafka to files of a table: fetch, parse, write, open topics, rounds."""
