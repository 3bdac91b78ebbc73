"""The smallest configuration, of a group whose Kafka and lake nobody asks, and changes of it."""

import json

from kgs_core.config import Settings, parse_settings

SECTIONS = {
    "group": "g",
    "kafka": "{bootstrap_servers: '127.0.0.1:9'}",
    "lake": "{root: /lake}",
    "topics": "[{topic: t}]",
}


def text_of(**sections: object) -> str:
    """Of a file with these sections, as YAML or as plain values, in the place of ours or behind them."""
    found = {**SECTIONS, **sections}
    return "".join(f"{name}: {each if isinstance(each, str) else json.dumps(each)}\n" for name, each in found.items())


def settings_of(**sections: object) -> Settings:
    return parse_settings(text_of(**sections).encode(), "kgs.yaml", {})


YAML = text_of()
