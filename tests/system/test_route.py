"""One topic into several tables, with real consumers that are killed before, between and after the tables' commits.

With processes, since it is about what is in the tables when one of them is gone.
"""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.failpoints import crash_at
from tests.system.pipeline import Pipeline, produce, read_log
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(30), pytest.mark.timeout(600)]
TABLES = {"order": "side/orders", "click": "side/clicks"}
KINDS = (*TABLES, "other")
POINTS = ("route-claimed:1", "after-side-commit:3", "after-side-commit:4", "before-commit:2", "after-commit:2")
RULE = {"table": "own", "format": "json", "schema": {"i": "long", "kind": "string"}}
ROUTE = {"route": {"column": "kind", "tables": TABLES}}


def values(first: int, count: int) -> Iterator[bytes]:
    """Records of each kind, every 50th of them bad."""
    rows = ({"i": i, "kind": KINDS[i % 3]} for i in range(first, first + count))
    return (json.dumps(row).encode() if row["i"] % 50 else b"not json" for row in rows)


def assert_exact(pipeline: Pipeline, topic: str, level: int) -> None:
    """Each table holds what an independent read of the log gives, by the later route from value `level` on."""

    def table_of(row: dict[str, Any]) -> str:
        if row["i"] >= level:
            return "side/clicks" if row["kind"] == "order" else "own"
        return TABLES.get(row["kind"], "own")

    log = list(read_log(pipeline.bootstrap, pipeline.admin, topic))
    good = [(p, o, json.loads(value)) for p, o, value in log if value and value != b"not json"]
    for table in ("own", *TABLES.values()):
        rows = Counter((row["_partition"], row["_offset"], row["i"], row["kind"]) for row in pipeline.rows(table))
        assert rows == Counter((p, o, row["i"], row["kind"]) for p, o, row in good if table_of(row) == table)
    assert len(pipeline.rows("own_dead_letters")) == len(log) - len(good)


def test_killed_around_each_commit(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> None:
    """At last another consumer goes by another route, from where the tables are level."""
    topic = f"{topic_prefix}route"
    rule = {"topic": topic, **RULE}
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [rule | ROUTE], batch_bytes=20_000)
    pipeline.admin.create_topic(topic, 2)
    produced = 0
    for point in POINTS:
        produced += produce(pipeline.bootstrap, topic, values(produced, 2000))
        with pipeline.consumer(**crash_at(point, tmp_path)) as consumer:
            wait_until(lambda: consumer.process.poll() is not None, 90, f"dead at {point}: {consumer.tail()}")
            assert consumer.process.returncode == -signal.SIGKILL, consumer.tail()
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    pipeline.configure([rule | {"route": {"column": "kind", "tables": {"order": "side/clicks"}}}])
    with pipeline.consumer() as consumer:
        produce(pipeline.bootstrap, topic, values(produced, 2000))
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    assert_exact(pipeline, topic, produced)
    pipeline.assert_audit_is_clean()
