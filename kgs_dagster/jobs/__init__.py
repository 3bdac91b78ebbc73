"""What Dagster runs, a file per purpose."""
