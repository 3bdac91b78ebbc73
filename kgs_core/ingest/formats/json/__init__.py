"""JSON and JSON Schema."""
