"""`kgs simulate`: replay of loads, with tables, plots and pages."""
