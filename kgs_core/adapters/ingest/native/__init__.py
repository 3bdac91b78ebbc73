"""Fetching without a Python object for each record: librdkafka's own batch call, and loops compiled to machine code."""
