"""Kafka, Delta, Spark, the operating system: the only place that imports client libraries or starts threads."""
