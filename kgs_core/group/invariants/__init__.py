"""Invariants of a group and its assignments, as functions of plain values."""
