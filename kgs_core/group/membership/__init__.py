"""One consumer's side of the group: what it owns, what it reports, when it ends. Pure."""
