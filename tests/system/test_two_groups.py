"""Two groups with lakes of their own on one topic of a real broker: each gets every record, whatever the other does."""

from kgs_core.config import parse_settings
from kgs_core.lake.audit.audit import audit_lake
from tests.system.small_sink import BAD, GOOD, SmallSink, send, settings_text


def test_each_group_gets_every_record(kafka, admin, topic_prefix, tmp_path):
    topic = f"{topic_prefix}a"
    admin.create_topic(topic, 2)

    def settings(group):
        text = settings_text(kafka, tmp_path / group, topic_prefix).replace("group: audited", f"group: {group}")
        return parse_settings(text.encode(), "test", {})

    send(kafka, topic, *[GOOD] * 3, BAD)
    one, two = SmallSink(settings("one"), topic), SmallSink(settings("two"), topic)
    one.ingest()  # one of them is ahead: the other's positions are its own
    send(kafka, topic, *[GOOD] * 5, partition=1)
    two.ingest()
    one.ingest()
    for sink in (one, two):
        audit = audit_lake(sink.settings, with_log=True)
        assert audit.ok, audit
        assert [(table.rows, table.dead_letters) for table in audit.tables] == [(8, 1)]
