"""The audit of rows against tables' own logs and Kafka's."""
