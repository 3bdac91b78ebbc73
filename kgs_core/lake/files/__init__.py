"""Files of rows: columns, Parquet, layout, and the stores that hold them."""
