"""Status, plans and sentences for people and as JSON."""
