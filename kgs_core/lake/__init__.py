"""The lake: what is done with its tables, over the ports of the lake; and those ports by Delta tables.

Errors, in every function that asks a store, Kafka or a registry: TransientError where it does not answer, or not now;
PermanentError where it refuses; UnsafeError where the guarantee would break; ConfigError where the settings or the
user's words do not fit. A docstring names an error only where somebody tells it from others.
"""
