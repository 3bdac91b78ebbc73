"""The group's topics: readers, the controller's writer, assignments, reports, what operators want."""
