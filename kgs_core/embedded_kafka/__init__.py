"""A Kafka cluster on this machine, for tests and demonstrations."""
