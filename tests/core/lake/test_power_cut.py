"""Tables on a local disk whose machine lost its power.

What was not put on the disk in time is there, in part or not at all, as the disk likes. With `lake.fsync` no commit is
lost; without it, a table is as of an earlier commit, or it is refused by name, and putting its log back makes it whole.
"""

import itertools
import os
import random
import re
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.config.settings import LakeSettings
from kgs_core.errors import UnsafeError
from kgs_core.lake.delta import log_upkeep, table_log
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.store_check import check_store
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import CommitOutcome, TableLayout
from tests.core.lake.losing_disk import LosingDisk, Moment, after_the_cut
from tests.one_column import LAKE, SCHEMA, batch_of, file_of, fill, handle_of, table_at, values_in

COMMITS = 4


def entry(storage, version):
    return Path(storage.path("t", f"_delta_log/{version:020d}.json"))


def cut(path, size=0):
    os.truncate(path, size)


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def checkpoint(storage):
    DeltaTable(storage.uri("t")).create_checkpoint()
    return entry(storage, COMMITS).with_suffix(".checkpoint.parquet")


def newest_file(storage):
    return max(Path(storage.path("t")).glob("*.parquet"), key=os.path.getmtime)


FILE = "file .*, which log entry 0*4.json added, is missing or not whole"
DAMAGE = {
    "newest entry empty": (lambda s: cut(entry(s, 4)), "log entry 0*4.json is empty"),
    "newest entry half": (lambda s: cut(entry(s, 4), 100), "log entry 0*4.json is not whole"),
    "newest entry of zeros": (lambda s: zeroed(entry(s, 4)), "log entry 0*4.json is not whole"),
    "entry within empty": (lambda s: cut(entry(s, 2)), "log entry 0*2.json is empty"),
    "entry within half": (lambda s: cut(entry(s, 2), 100), "log entry 0*2.json is not whole"),
    "entry within gone": (lambda s: entry(s, 2).unlink(), "log entry 0*2.json is missing, and later ones"),
    "first entry empty": (lambda s: cut(entry(s, 0)), "log entry 0*.json is empty"),
    "first entry gone": (lambda s: entry(s, 0).unlink(), "log entry 0*.json is missing, and later ones"),
    "checkpoint half": (lambda s: cut(checkpoint(s), 50), "checkpoint 0*4.checkpoint.parquet cannot be read"),
    "checkpoint empty": (lambda s: cut(checkpoint(s)), "checkpoint 0*4.checkpoint.parquet cannot be read"),
    "checkpoint gone": (lambda s: checkpoint(s).unlink(), "checkpoint 0*4.checkpoint.parquet, which .* is missing"),
    "file gone": (lambda s: newest_file(s).unlink(), FILE),
    "file empty": (lambda s: cut(newest_file(s)), FILE),
    "file half": (lambda s: cut(newest_file(s), 30), FILE),
    "file of zeros": (lambda s: zeroed(newest_file(s)), FILE),
    "file behind a checkpoint": (lambda s: (checkpoint(s), cut(newest_file(s))), FILE),
}
LOOKS = {
    "create": lambda s: handle_of(s).create(),
    "versions": lambda s: handle_of(s).versions(["a"]),
    "commit": lambda s: handle_of(s).commit({"a": 4}, {"a": 5}, [file_of(s, 9)]),
    "open": lambda s: DeltaLake(LakeSettings(root=s.root)).open("t").versions(["a"]),
    "audit": lambda s: DeltaLake(LakeSettings(root=s.root)).pin("t"),
    "maintenance": lambda s: maintain_table(s, "t"),
    "kgs check lake": lambda s: raise_all(check_store(s)),
}


def raise_all(findings):
    for problem in [found.problem for found in findings if found.problem]:
        raise problem


@pytest.mark.parametrize("what", DAMAGE)
def test_torn_table_is_named_wherever_it_is_opened(storage, what):
    damage, words = DAMAGE[what]
    fill(storage, table_at(storage), COMMITS)
    damage(storage)
    before = sorted(os.listdir(storage.path("t", "_delta_log")))
    for look in LOOKS.values():
        with pytest.raises(UnsafeError, match=f"^table t: {words}.*: restore it, or put the log back") as caught:
            look(storage)
        assert "\n" not in str(caught.value)
    assert sorted(os.listdir(storage.path("t", "_delta_log"))) == before


@pytest.mark.parametrize("size", [0, 10])
def test_half_note_of_the_newest_checkpoint_is_passed_over(storage, size):
    fill(storage, table_at(storage), COMMITS)
    checkpoint(storage)
    cut(Path(storage.path("t", "_delta_log/_last_checkpoint")), size)
    assert table_at(storage).versions(["a"]) == {"a": COMMITS}
    assert values_in(storage) == [*range(COMMITS)]


NAME, SOME = "bronze/t", 9
PLACED = SCHEMA.append(pa.field("p", pa.int32()))


def placed_table(storage):
    """In a folder of its own, with a folder for each value of `p`."""
    table = DeltaTopicTable(TableLog(storage, NAME, PLACED, LAKE, TableLayout(("p",))))
    table.create()
    return table


def commit_one(storage, table, n):
    file = write_table(storage, NAME, [batch_of(n)], SCHEMA, {"p": str(n % 2)})
    assert table.commit({"a": n or None}, {"a": n + 1}, [file]) is CommitOutcome.COMMITTED


def checkpoint_at_once(storage, name, version, interval):
    if version % interval == 0:
        assert log_upkeep._at_work.acquire(timeout=10)
        log_upkeep._keep(storage, name, cleans=False)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Of a table: every moment at which the power may go."""

    @cache
    def made(fsync: bool) -> tuple[Path, list[Moment]]:
        disk = LosingDisk(tmp_path_factory.mktemp("disk"))
        storage = Storage(str(disk.root / "lake"), fsync=fsync)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "fsync", disk.fsync)
            patched.setattr(table_log, "keep_short", checkpoint_at_once)
            disk.look()
            table = placed_table(storage)
            for n in range(SOME):
                commit_one(storage, table, n)
                disk.done = n + 1
                disk.look()
                if n in (3, 6):
                    assert maintain_table(storage, NAME).problem is None
                    disk.look()
        disk.close()
        return disk.root, disk.moments

    return made


def put_back(log: Path, words: str) -> int:
    """What docs/reliability.md tells to do; the number that it begins at."""
    number = re.search(r"\d{20}", words)[0]
    is_checkpoint = words.startswith(f"table {NAME}: checkpoint")
    for file in log.iterdir():
        if file.name[0].isdigit() and (
            file.name.startswith(f"{number}.check") if is_checkpoint else file.name >= number
        ):
            file.unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    return -1 if is_checkpoint else int(number)


@pytest.mark.parametrize("fsync", [True, False])
def test_power_cut(history, tmp_path_factory, fsync):
    root, moments = history(fsync)
    seen = {"whole": 0, "named": 0}
    numbers = itertools.count()
    folder = tmp_path_factory.mktemp("after")

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(range(len(moments))), st.integers(0, 1 << 30))
    def check(at, seed):
        moment, target = moments[at], folder / str(next(numbers))
        after_the_cut(root, moment, target, random.Random(seed))
        storage = Storage(str(target / "lake"))
        log = target / "lake" / NAME / "_delta_log"
        kind = "whole"
        while True:
            try:
                table = placed_table(storage)
                break
            except UnsafeError as e:
                kind, words = "named", str(e)
            begins_at = put_back(log, words)
            assert not (fsync and begins_at in ours(root, moment)), words
        seen[kind] += 1
        position = table.versions(["a"])["a"] or 0
        assert values_in(storage, NAME) == [*range(position)]
        assert position <= SOME
        if fsync:
            assert position >= moment.done
        commit_one(storage, table, position)
        assert values_in(storage, NAME) == [*range(position + 1)]

    check()
    assert min(seen.values()) > 0, seen


def ours(root: Path, moment: Moment) -> set[int]:
    """Numbers of the log's entries that kgs made itself, and put on the disk."""
    found = moment.tree.get(str(root / "lake" / NAME / "_delta_log"), {})
    return {int(name[:20]) for name, at in found.items() if name[20:] == ".json" and b'"kgs"' in moment.seen[at]}
