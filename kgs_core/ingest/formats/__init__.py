"""Formats of record values: a module for each. Which there are says `kgs_core.config.rule.value_formats`."""
