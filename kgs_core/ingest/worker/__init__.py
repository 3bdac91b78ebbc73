"""The worker's half of a batch, from records to files: fetch -> values -> rows -> files, by a plan of the topic."""
