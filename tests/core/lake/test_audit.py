"""Audits of a lake with tables that cannot be read: the others are audited, and nothing is said of these."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kgs_core.cli.lake.audit import lines
from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.audit import audit
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule import Fault, LakeAudit, LogPart
from kgs_core.lake.rule.first_start import GroupOffset
from kgs_core.lake.topics.discovery import find_tables
from kgs_core.model import TopicId, TopicPartition
from kgs_core.reporting.audit_json import audit_values
from tests.core.lake.changing_hands import MemoryKafka
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.sink import Sink

RULE = {"pattern": "[a-z]", "table": "{topic}", **LONGS}


@pytest.fixture
def settings(tmp_path):
    for topic in "abc":
        Sink(Storage(str(tmp_path)), topic=topic, topic_id=f"id-{topic}", table=topic).started(1).ingest({0: (0, 20)})
    return kgs_yaml(tmp_path, RULE)


@pytest.mark.parametrize("broken", ["log", "files"])
def test_a_table_that_cannot_be_read_stops_no_other_one(settings, monkeypatch, broken):
    root = Path(settings.lake.root)
    if broken == "log":  # found by its topic, which Kafka has
        (root / "b/_delta_log/00000000000000000001.json").write_text("no JSON")
    else:
        for file in (root / "b").glob("*.parquet"):
            file.unlink()
    monkeypatch.setattr(audit, "find_tables", lambda *given: find_tables(*given[:2], "abc", None))
    found = audit_lake(settings, with_log=False)
    assert [(table.topic, table.ok, table.rows) for table in found.tables] == [
        ("a", True, 16), ("b", False, 0), ("c", True, 16),
    ]  # fmt: skip
    assert not found.ok
    assert "table b" in found.tables[1].problem
    assert audit_values(found)["tables"][1]["problem"] == found.tables[1].problem
    shown = list(lines(found))
    assert any(line.startswith("b ") and line.endswith("NOT READ") for line in shown)
    assert f"  {found.tables[1].problem}" in shown


def test_a_store_that_is_away_is_not_asked_for_each_table(settings, monkeypatch):
    asked = []

    def away(lake, group, specs, belongs):
        asked.append(specs[0].table)
        raise TransientError("it is away")

    monkeypatch.setattr(audit, "load_snapshots", away)
    with pytest.raises(TransientError, match="it is away"):
        audit_lake(settings, with_log=False)
    assert asked == ["a", "b"]


def test_a_topic_whose_log_is_refused_stops_no_other_one(settings, monkeypatch):
    with_logs_of(monkeypatch, {"b": PermanentError("topic b: not allowed")})
    found = audit_lake(settings)
    assert [(table.topic, table.ok, table.problem) for table in found.tables] == [
        ("a", True, ""), ("b", False, "topic b: not allowed"), ("c", True, ""),
    ]  # fmt: skip


def test_one_that_does_not_answer_after_one_that_is_refused_is_not_a_kafka_that_is_away(settings, monkeypatch):
    with_logs_of(monkeypatch, {"b": PermanentError("not allowed"), "c": TransientError("no leader")})
    assert [table.problem for table in audit_lake(settings).tables] == ["", "not allowed", "no leader"]


def test_a_kafka_that_is_away_is_not_asked_for_each_topic(settings, monkeypatch):
    asked = with_logs_of(monkeypatch, dict.fromkeys("bc", TransientError("it is away")))
    with pytest.raises(TransientError, match="it is away"):
        audit_lake(settings)
    assert asked == ["a", "b", "c"]


def with_logs_of(monkeypatch, errors):
    """A Kafka that has all topics, and fails to read some; the topics that it is asked for."""
    asked = []

    def read(settings, admin, topic, snapshot, progress):
        asked.append(topic)
        if topic in errors:
            raise errors[topic]
        return dict.fromkeys(snapshot.positions, audit.NOT_READ), TopicDescription(TopicId(f"id-{topic}"), 1)

    monkeypatch.setattr(audit, "admin_of", lambda _: SimpleNamespace(list_topics=lambda: list("abc")))
    monkeypatch.setattr(audit, "_read_log", read)
    return asked


class KafkaOf(MemoryKafka):
    """A Kafka with topic a of two partitions, whose logs hold what is said; and what the group has committed."""

    def __init__(self, monkeypatch, start=0, end=20, **committed):
        super().__init__("id-a", topic="a")
        self.log = lambda wanted: {p: LogPart(start=start, end=end) for p in wanted}
        group = MemoryOffsets()
        group.stored = {TopicPartition("a", 0): GroupOffset(**committed)} if committed else {}
        monkeypatch.setattr(audit, "admin_of", lambda _: self)
        monkeypatch.setattr(audit, "GroupOffsets", lambda *_: group)
        monkeypatch.setattr(audit, "load_log", lambda settings, admin, topic, wanted, advance: self.log(wanted))


def audited_a(settings):
    return audit_lake(settings, topics=["a"]).tables[0]


def test_records_that_were_deleted_before_they_were_read_are_a_fault_also_of_a_partition_never_read(
    settings, monkeypatch
):
    KafkaOf(monkeypatch, start=28, end=31)
    found = audited_a(settings)
    assert [(p.unread, p.count(Fault.DELETED_UNREAD)) for p in found.partitions] == [(11, 8), (31, 28)]
    assert (found.ok, found.unread) == (False, 42)
    assert audit_values(LakeAudit((found,)))["tables"][0]["deleted_unread"] == 36
    shown = list(lines(LakeAudit((found,))))
    assert "  unread  " in shown[0]
    assert "deleted unread" in shown[0]
    assert shown[-1].endswith("until kgs accept-loss")


def test_what_is_deleted_after_it_was_read_meanwhile_is_no_fault(settings, monkeypatch):
    kafka = KafkaOf(monkeypatch)

    def log(wanted):
        Sink(Storage(settings.lake.root), topic="a", topic_id="id-a", table="a").ingest({0: (20, 28)})
        return {p: LogPart(start=28 if p == 0 else 0, end=28) for p in wanted}

    kafka.log = log
    assert audited_a(settings).ok


@pytest.mark.parametrize("start", ["earliest", "latest"])
@pytest.mark.parametrize("how", ["moved", "made anew by another topic"])
def test_a_table_that_is_missing_is_not_ok_where_the_group_has_read_its_topic(settings, monkeypatch, how, start):
    settings.topics[0].__dict__["start"] = start
    root = Path(settings.lake.root)
    (root / "a").rename(root / "moved")
    if how != "moved":
        (root / "b").rename(root / "a")
    KafkaOf(monkeypatch, offset=20, topic_id=TopicId("id-a"), table="a")
    found = audited_a(settings)
    assert not found.ok
    assert found.problem.startswith(
        "table a: not there, or without positions of topic a, though group g has read a:0 up"
    )
    shown = list(lines(LakeAudit((found,))))
    assert shown[1].split() == ["a", *"????????", "NOT", "READ"]


@pytest.mark.parametrize("committed", [{}, {"offset": 5, "topic_id": TopicId("earlier")}])
def test_a_table_of_a_topic_that_was_never_read_may_be_missing(settings, monkeypatch, committed):
    for table in ("a", "a_dead_letters"):
        (Path(settings.lake.root) / table).rename(Path(settings.lake.root) / f"{table}.moved")
    KafkaOf(monkeypatch, **committed)
    found = audited_a(settings)
    assert (found.ok, found.notes, found.unread) == (True, ("no table yet",), None)


def test_a_table_of_another_group_may_be_that_of_a_group_that_was_renamed(settings, monkeypatch):
    KafkaOf(monkeypatch)
    found = audited_a(settings.model_copy(update={"group": "shop"}))
    assert not found.ok
    assert found.notes == (
        "group g fills this table: if that is the earlier name of group shop: kgs adopt --from-group g",
    )
