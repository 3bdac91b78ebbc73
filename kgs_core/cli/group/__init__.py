"""Commands of the group: control, consume, status, plan, wishes."""
