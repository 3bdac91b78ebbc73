"""Redriven rows and derived tables where rows lie in partitions, and where the table has got more columns."""

from pathlib import Path

import pytest

from kgs_core.ingest.replay.redrive import Redrive
from kgs_core.lake.files import layout
from tests.core.ingest.letters import rule_of_then
from tests.kgs_yaml import kgs_yaml
from tests.layout_sink import COLUMNS, LayoutSink

LOG = {0: [{"s": f"a/{n % 3}" if n % 5 else None, "i": n, "d": "2026-01-31"} for n in range(30)]}
PARTITION_BY = ["s", "day(_timestamp)", "d"]
LATER = {"new": "string"}


def redrive(sink, **rule):
    return Redrive(kgs_yaml(sink.storage.root, {"format": "json", "schema": COLUMNS, **rule}), "t")


@pytest.fixture
def sink(tmp_path):
    """Every third record is bad by the rule of then."""
    sink = LayoutSink(tmp_path, LOG, partition_by=PARTITION_BY).started()
    with rule_of_then(lambda offset: offset % 3 == 0, "column i: too big"):
        sink.drain(15)
    assert len(sink.rows()) == 20
    return sink


@pytest.mark.parametrize("most", [1, 2])
def test_a_commit_makes_no_more_files_than_a_batch_may(sink, most, monkeypatch):
    monkeypatch.setattr(layout, "MOST_FILES", most)
    log = Path(sink.storage.uri("t"), "_delta_log")
    before = {*log.glob("*.json")}
    found = redrive(sink, partition_by=PARTITION_BY).run()
    assert (found.letters, found.passed, found.rows) == (10, 10, 10)
    assert [r["_offset"] for r in sink.rows()] == list(range(30))
    files = [path.read_text().count('{"add":') for path in {*log.glob("*.json")} - before]
    assert len(files) > 1
    assert max(files) == most
    assert redrive(sink, partition_by=PARTITION_BY).run().done == 10


def test_a_table_of_another_layout_is_refused(sink):
    with pytest.raises(Exception, match=r"is partitioned by s, _timestamp_day, d, its rule in kgs\.yaml says not"):
        redrive(sink).run()


def test_a_dry_run_adds_no_column_and_a_redrive_does(sink):
    rule = {"partition_by": PARTITION_BY, "schema": COLUMNS | LATER, "evolve": "add_columns"}
    before = sink.entries()
    assert redrive(sink, **rule).run(dry_run=True).passed == 10
    assert sink.entries() == before
    assert redrive(sink, **rule).run().passed == 10
    assert [r["_offset"] for r in sink.rows()] == list(range(30))
    assert {r["new"] for r in sink.rows()} == {None}
