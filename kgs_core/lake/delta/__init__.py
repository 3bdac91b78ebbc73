"""Delta tables: logs, commits alone and combined, upkeep. Only this room and `derived` know Delta's words."""
