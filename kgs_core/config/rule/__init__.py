"""A rule for topics: its part of kgs.yaml, and the tables that follow from it."""
