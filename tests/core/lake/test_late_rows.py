"""Late rows of a table, against a plain loop over what each version added: appended, rewritten, erased, expired."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.config.settings import LakeSettings
from kgs_core.lake.rule.completeness import HOUR_MS
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.late_rows import LateRows

STAMPS = st.lists(st.integers(0, 4 * HOUR_MS), min_size=1, max_size=3)
STEPS = st.lists(st.one_of(STAMPS, st.sampled_from(["compact", "columns", "erase"])), min_size=1, max_size=6)


def append(path: Path, stamps: list[int]) -> None:
    stamps_us = pa.array([stamp * 1000 for stamp in stamps], pa.timestamp("us", tz="UTC"))
    write_deltalake(path, pa.table({"_timestamp": stamps_us}), mode="append")


def pinned_in(root):
    return open_lake(LakeSettings(root=str(root))).pin("t")


def change(path: Path, step: list[int] | str) -> list[int]:
    """Do one step; timestamps of the rows that came with it."""
    if isinstance(step, list):
        append(path, step)
        return step
    table = DeltaTable(path)
    if step == "compact":
        table.optimize.compact()
    elif step == "columns":
        table.alter.set_table_properties({"kgs.test": "1"}, raise_if_not_exists=False)
    else:
        table.delete("_timestamp < '1970-01-01T00:30:00Z'")
    return []


@settings(max_examples=40, deadline=None)
@given(first=STAMPS, steps=STEPS, seen=st.integers(0, 6), asked=st.integers(0, 6), until_ms=st.integers(0, 4 * HOUR_MS))
def test_rows_that_came_since_a_version_count_once_whatever_else_was_done(first, steps, seen, asked, until_ms):
    """Also when the same is asked in between by a caller who does not wait for the answer."""
    with TemporaryDirectory() as root:
        path, late = Path(root) / "t", LateRows()
        append(path, first)
        pinned, came, since = pinned_in(root), [], 0
        for number, step in enumerate(steps):
            came += change(path, step)
            pinned.refresh()
            if number == seen:
                since, came = pinned.version, []
            if number == asked:
                late.of("t", pinned, since, until_ms)
        expected = Counter(stamp - stamp % HOUR_MS for stamp in came if stamp < until_ms)
        assert late.of("t", pinned, since, until_ms) == expected
        assert LateRows().of("t", pinned, since, until_ms) == expected, "another process"


def test_of_expired_entries_every_row_counts_that_was_written_since(tmp_path):
    path = tmp_path / "t"
    for stamps in ([5], [6, 3 * HOUR_MS], [HOUR_MS]):
        append(path, stamps)
    DeltaTable(path).create_checkpoint()
    (path / "_delta_log" / f"{1:020}.json").unlink()
    pinned = pinned_in(tmp_path)
    assert LateRows().of("t", pinned, 0, 2 * HOUR_MS) == {0: 2, HOUR_MS: 1}
    assert LateRows().of("t", pinned, 1, 2 * HOUR_MS) == {HOUR_MS: 1}


def test_of_a_table_that_was_made_again_every_row_counts(tmp_path):
    append(tmp_path / "t", [])
    append(tmp_path / "t", [5, 3 * HOUR_MS])
    pinned, late = pinned_in(tmp_path), LateRows()
    assert late.of("t", pinned, 7, 2 * HOUR_MS) == late.of("t", pinned, 7, 2 * HOUR_MS) == {0: 1}
