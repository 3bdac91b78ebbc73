"""Groups to make definitions of; nothing of them has to exist."""

from pathlib import Path

from kgs_dagster.settings import GroupConfig, name_groups
from tests.configuration import settings_of

TOPICS = "[{topic: orders, table: bronze/orders}, {pattern: 'flights\\..*', table: 'bronze/{topic}'}]"


def settings(name="g", topics=TOPICS, **sections):
    return settings_of(**{"group": name, "kafka": "{bootstrap_servers: 'localhost:1'}", "topics": topics, **sections})


def group(name="g", topics=TOPICS, **sections) -> GroupConfig:
    return name_groups([(settings(name, topics, **sections), Path("/etc/kgs.yaml"))])[0]


def two_groups() -> tuple[GroupConfig, ...]:
    return name_groups([(settings(name), Path(f"/etc/{name}.yaml")) for name in ("a.b", "c-d")])
