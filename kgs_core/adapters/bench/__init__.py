"""`kgs bench ingest`: a consumer against a backlog and against single records, beside its peers."""
