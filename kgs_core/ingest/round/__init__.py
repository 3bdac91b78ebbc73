"""A consumer's round: what is asked, what may be answered, and what comes of it. Pure."""
