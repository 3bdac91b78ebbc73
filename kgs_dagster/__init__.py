"""How Dagster runs kgs."""
