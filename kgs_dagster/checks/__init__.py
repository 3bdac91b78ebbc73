"""Checks of the assets."""
