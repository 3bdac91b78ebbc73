"""A group's settings, as from a kgs.yaml."""

import yaml

from kgs_core.config import parse_settings

LONGS = {"format": "json", "schema": {"n": "long"}}
"""The rule of `tests.sink`."""


def kgs_yaml(root, *topics, group="g", **sections):
    """Settings of these topics, each a rule, `t` with table `t` where it names none; nobody is asked for Kafka."""
    named = [rule if {"topic", "pattern"} & rule.keys() else {"topic": "t", "table": "t", **rule} for rule in topics]
    whole = {
        "group": group,
        "kafka": {"bootstrap_servers": "127.0.0.1:9"},
        "lake": {"root": str(root), "checkpoint_interval": 5},
        "topics": named,
        **sections,
    }
    return parse_settings(yaml.safe_dump(whole, allow_unicode=True).encode(), "kgs.yaml", {})
