"""A schema that changes under two consumers, one of the configuration of before; killed at each step of the change.

With real consumers, since it is about what each process has loaded, and who reads the same offsets again after a kill;
the steps of the commit itself are explored in `core/lake/test_evolution.py`.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.lake.topics.factory import open_lake
from tests.failpoints import crash_at
from tests.growing_values import FORMAT, NAME
from tests.system.pipeline import Pipeline, produce, read_log
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60), pytest.mark.timeout(600)]
ROOT = str(Path(__file__).resolve().parents[2])
POINTS = ("before-columns", "columns-added")


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Environment of consumers that know the format; this process knows it, too."""
    monkeypatch.setitem(FORMATS, NAME, FORMAT)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("from tests import growing_values\ngrowing_values.register()\n")
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), ROOT])}


def values(first: int, count: int, *, is_new: bool) -> Iterator[bytes]:
    """Old records and, if there are some, new ones among them; every 50th is bad."""
    for i in range(first, first + count):
        record = {"i": i, "twice": 2 * i} if is_new and i % 3 else {"i": i}
        yield json.dumps(record).encode() if i % 50 else b"not json"


def columns_of(path: Path) -> list[str]:
    return [field.name for field in DeltaTable(str(path)).schema().fields if not field.name.startswith("_")]


class Change:
    """Two topics, one whose columns are the rule's and one whose columns are the records' own, and their consumers."""

    def __init__(self, folder: Path, bootstrap: str, prefix: str, environ: dict[str, str]) -> None:
        ruled, told = self.topics = [f"{prefix}ruled", f"{prefix}told"]
        old = [{"topic": ruled, "format": "json", "schema": {"i": "long"}}, {"topic": told, "format": NAME}]
        self.new = [{**rule, "evolve": "add_columns"} for rule in old]
        self.new[0]["schema"] = {"twice": "long", "i": "long"}
        self.pipeline = Pipeline(folder, bootstrap, old, batch_bytes=20_000)
        self.environ = environ
        self.produced = 0
        for topic in self.topics:
            self.pipeline.admin.create_topic(topic, 3)

    def send(self, count: int, *, is_new: bool = True) -> None:
        for topic in self.topics:
            produce(self.pipeline.bootstrap, topic, values(self.produced, count, is_new=is_new))
        self.produced += count

    def catch_up(self) -> None:
        self.pipeline.wait_caught_up(self.topics)

    def kill_a_new_consumer(self, topic: str, point: str) -> None:
        """At this step of the change of this topic's table, while records keep coming."""
        proof = self.pipeline.folder / point
        with self.pipeline.consumer(2, **crash_at(point, proof.parent), **self.environ) as killed:

            def dies() -> bool:
                self.send(100)
                return killed.process.poll() is not None

            wait_until(dies, 60, f"dead at {point}: {killed.tail()}")
            assert killed.process.returncode == -signal.SIGKILL, killed.tail()
        proof.unlink()
        assert ("twice" in columns_of(self.pipeline.lake / topic)) == (point == "columns-added")


def test_old_and_new_consumers_and_records_together(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path, growing: dict[str, str]
) -> None:
    change = Change(tmp_path, kafka.bootstrap_servers, topic_prefix, growing)
    pipeline = change.pipeline
    change.send(1000, is_new=False)
    with pipeline.consumer(1, **growing) as former:
        change.catch_up()
        pipeline.configure(change.new)
        for topic in change.topics:
            for point in POINTS:
                change.kill_a_new_consumer(topic, point)
        with pipeline.consumer(2, **growing) as later:
            change.catch_up()
            change.send(1000)
            change.catch_up()
            former.terminate()
            known = change.produced
            change.send(500)
            change.catch_up()
            later.terminate()
    for topic in change.topics:
        check(pipeline, topic, known)
    pipeline.assert_audit_is_clean()
    before = [rows_of(pipeline, topic) for topic in change.topics]
    lake = open_lake(pipeline.settings.lake)
    assert all(lake.maintain(topic, dry_run=False).problem is None for topic in change.topics)
    assert [rows_of(pipeline, topic) for topic in change.topics] == before
    pipeline.assert_audit_is_clean()


def rows_of(pipeline: Pipeline, topic: str) -> list[tuple[int, int, int, int | None]]:
    """Partition, offset and values of all rows, as deltalake's reader finds them."""
    names = ["_partition", "_offset", "i", "twice"]
    return sorted(
        tuple(row.values())
        for row in DeltaTable(str(pipeline.lake / topic)).to_pyarrow_table(columns=names).to_pylist()
    )


def check(pipeline: Pipeline, topic: str, known: int) -> None:
    """Every record once, with its values; what only a new consumer has read has all of them."""
    log = {(p, o): value for p, o, value in read_log(pipeline.bootstrap, pipeline.admin, topic)}
    rows = rows_of(pipeline, topic)
    good = {place: json.loads(value) for place, value in log.items() if value != b"not json"}
    assert [(p, o, i) for p, o, i, _ in rows] == sorted((p, o, record["i"]) for (p, o), record in good.items())
    for p, o, i, twice in rows:
        wanted = good[p, o].get("twice")
        assert twice == wanted or (twice is None and i < known), (topic, p, o)
    letters = [(row["_partition"], row["_offset"]) for row in pipeline.rows(f"{topic}_dead_letters")]
    assert sorted(letters) == sorted(log.keys() - good.keys())
