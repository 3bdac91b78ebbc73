"""Tables that change hands, by another name of the group or another topic id; Kafka is from memory."""

from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.handover import adoption, migration
from kgs_core.model import TopicId
from tests.kgs_yaml import LONGS, kgs_yaml


class MemoryKafka:
    """One topic."""

    def __init__(self, topic_id="id1", partitions=2, first=0, end=100, topic="t"):
        self.topic = topic
        self.found = TopicDescription(TopicId(topic_id), partitions)
        self.range = {"earliest": first, "latest": end}

    def list_topics(self):
        return [self.topic]

    def describe(self, topics):
        return {topic: self.found for topic in topics if topic == self.topic}

    def topic_ids(self, topics):
        return {topic: self.found.topic_id if topic == self.topic else None for topic in topics}

    def offsets(self, tps, which):
        return dict.fromkeys(tps, self.range[which])


def put_kafka(monkeypatch, kafka):
    for module in (adoption, migration):
        monkeypatch.setattr(module, "admin_of", lambda _: kafka)


def settings_of(storage, group):
    return kgs_yaml(storage.root, LONGS, group=group)


def adopting(settings, old="g"):
    """`kgs adopt`, with the tables that are still to change hands."""
    found = adoption.GroupAdoption(settings, old)
    return found, found.pending(())


def carry_out(found, tables):
    """All of them; their names."""
    for table in tables:
        found.carry_out(table)
    return [table.table for table in tables]


def adopt(storage, old="g", new="h"):
    """All that `old` has; the tables that changed hands."""
    return carry_out(*adopting(settings_of(storage, new), old))


def planned(settings, given=None, *, keep=True, **how):
    """`kgs migrate`, and what it is going to do."""
    found = migration.Migration(settings)
    return found, found.plan("t", given or {}, keep=keep, **how)


def move(storage, given=None, **how):
    moving, found = planned(settings_of(storage, "g"), given, **how)
    moving.carry_out(found)
    return found


def clean(storage, group):
    """The audit by the tables' own logs; every offset of these tests is a record."""
    found = audit_lake(settings_of(storage, group), with_log=False)
    assert found.ok, found
    return found.tables[0]
