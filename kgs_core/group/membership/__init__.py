"""The consumer's decisions, pure: application ids, what to read next, whether a batch may be committed."""
