"""Commands of the group: control, consume, status, plan, operators' commands."""
