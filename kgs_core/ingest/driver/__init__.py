"""Rounds of a consumer, and what runs their batches."""
