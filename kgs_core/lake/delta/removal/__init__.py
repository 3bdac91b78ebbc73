"""Rows that end: which were decided to, and their removal from a table."""
