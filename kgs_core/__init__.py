"""What kgs does; knows no Dagster."""
