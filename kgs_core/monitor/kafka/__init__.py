"""Measurements of partition sizes: asked of brokers, published, read back."""
