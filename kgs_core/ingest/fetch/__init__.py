"""Records out of Kafka, into Arrow columns."""
