"""Measurements of speed, capacity and accuracy."""
