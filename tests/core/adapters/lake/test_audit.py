"""Audits of a lake with tables that cannot be read: the others are audited, and nothing is said of these."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from kgs_core.adapters.lake import audit
from kgs_core.adapters.lake.audit import audit_lake
from kgs_core.adapters.lake.discovery import find_tables
from kgs_core.adapters.lake.storage import Storage
from kgs_core.cli.lake.audit import lines
from kgs_core.config import parse_settings
from kgs_core.errors import PermanentError, TransientError
from kgs_core.model import TopicId
from kgs_core.reporting.audit_json import audit_values
from tests.sink import Sink

TEXT = """
group: g
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}}}
topics: [{{pattern: "[a-z]", table: "{{topic}}", format: json, schema: {{n: long}}}}]
"""


@pytest.fixture
def settings(tmp_path):
    for topic in "abc":
        Sink(Storage(str(tmp_path)), topic=topic, topic_id=f"id-{topic}", table=topic).started(1).ingest({0: (0, 20)})
    return parse_settings(TEXT.format(root=tmp_path).encode(), "kgs.yaml", {})


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
        return dict.fromkeys(snapshot.positions, audit.NOT_READ), TopicId(f"id-{topic}")

    monkeypatch.setattr(audit, "KafkaAdmin", lambda _: SimpleNamespace(list_topics=lambda: list("abc")))
    monkeypatch.setattr(audit, "_read_log", read)
    return asked
