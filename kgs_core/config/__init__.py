"""The settings of kgs.yaml: models, and how the text becomes them. `file` reads it and is imported by its full name."""

# Not `load_settings`: whoever imports this package must not get file access with it
from kgs_core.config.packing import PackingSettings
from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.settings import Settings
from kgs_core.config.tables import TableSpec, resolve_tables
from kgs_core.config.text import parse_settings

__all__ = ["PackingSettings", "Settings", "TableSpec", "TopicRule", "parse_settings", "resolve_tables"]
