"""The group's topics: reader, inbox, outbox, assignments, reports, operators' wishes."""
