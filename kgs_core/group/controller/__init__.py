"""The controller's decisions, as functions of values."""
