"""Lineage: events of OpenLineage about what consumers read and write."""
