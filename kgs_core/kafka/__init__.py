"""Kafka's clients: admin, producers, committed offsets, records, errors."""
