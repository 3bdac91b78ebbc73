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
    lake_at(root, {}).table(TABLE, SCHEMA).create()
    records = run_writers(WriterJob(root, {}, "direct", (0, 1), 2, 0.3), lambda: None)
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


def test_rows_whose_file_left_the_log_are_lost(written):
    root, records = written
    last = entries(root)[-1]
    last.write_text("".join(line for line in last.read_text().splitlines(True) if "add" not in json.loads(line)))
    assert judged(root, records) == (20, 0)


def test_entry_that_is_gone_takes_rows_that_were_reported(written):
    root, records = written
    entries(root)[-1].unlink()
    assert judged(root, records) == (20, 0)


def test_file_named_twice_doubles_its_rows(written):
    root, records = written
    first, last = entries(root)[0], entries(root)[-1]
    line = next(line for line in first.read_text().splitlines(True) if "add" in json.loads(line))
    last.write_text(f"{last.read_text()}\n{line}")
    assert judged(root, records) == (0, 20)


def test_position_behind_the_rows_will_double_them(written):
    root, records = written
    last = entries(root)[-1]
    last.write_text("".join(line for line in last.read_text().splitlines(True) if "txn" not in json.loads(line)))
    assert judged(root, records) == (0, 20)
