"""The judge of `bench lake`: it must see what it is there for."""

import json
from pathlib import Path

import pytest

from bench.lake_commits import judge_table, log_sizes
from bench.lake_writer import SCHEMA, TABLE, WriterJob, lake_at, run_writers
from kgs_core.lake.files.storage import Storage


@pytest.fixture
def written(tmp_path):
    """A lake with two writers of two partitions each, and what they saw."""
    root = str(tmp_path)
    lake_at(Storage(root)).table(TABLE, SCHEMA).create()
    records = run_writers(WriterJob(Storage(root), "direct", (0, 1), 2, 0.3), lambda: None)
    assert [record.errors for record in records] == [[], []]
    assert all(record.commit_s for record in records)
    return tmp_path, records


def entries(root):
    return sorted(Path(root, TABLE, "_delta_log").glob("*.json"))[1:]


def judged(root, records):
    return judge_table(Storage(str(root)), TABLE, records)


def test_every_row_is_there_once(written):
    assert judged(*written) == (0, 0)


def test_sizes_are_those_of_the_log(written):
    root, _ = written
    sizes = log_sizes(Storage(str(root)), TABLE)
    assert sizes["entry_bytes"] == max(
        len(path.read_bytes()) for path in Path(root, TABLE, "_delta_log").glob("*.json")
    )
    lines = [line for path in entries(root) for line in path.read_text().splitlines(True) if '"txn"' in line]
    assert sizes["position_bytes"] == pytest.approx(sum(map(len, lines)) / len(lines), abs=0.1)


def without(action, entry):
    entry.write_text("".join(line for line in entry.read_text().splitlines(True) if action not in json.loads(line)))


def name_twice(first, last):
    line = next(line for line in first.read_text().splitlines(True) if "add" in json.loads(line))
    last.write_text(f"{last.read_text()}\n{line}")


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda *entries: without("add", entries[-1]), (20, 0)),
        (lambda *entries: entries[-1].unlink(), (20, 0)),
        (lambda *entries: name_twice(entries[0], entries[-1]), (0, 20)),
        (lambda *entries: without("txn", entries[-1]), (0, 20)),
    ],
    ids=["a file left the log", "an entry is gone", "a file is named twice", "a position behind the rows"],
)
def test_rows_that_are_lost_or_doubled_are_seen(written, damage, found):
    root, records = written
    damage(*entries(root))
    assert judged(root, records) == found
