"""The worker's half of a batch: from records to files."""
