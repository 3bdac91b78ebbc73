"""Fleets: where consumers run."""
