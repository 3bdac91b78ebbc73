"""Dagster as the control room of kgs."""
