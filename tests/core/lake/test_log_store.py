"""The log's files on a disk: what is seen from a known entry on, holes, and the creation of the next entry."""

import json
import os

import pytest

from kgs_core.lake.delta.log_store import DiskLog, EntryExistsError, entry_name


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "_delta_log"
    folder.mkdir()
    return DiskLog(folder)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "_delta_log"


def note(folder, version):
    (folder / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 1}))


def filled(log, count):
    return [log.create(version, f"{version}".encode()) for version in range(count)]


def test_entry_is_made_once_and_the_second_leaves_the_first_alone(log, folder):
    stamp = log.create(0, b"first")
    with pytest.raises(EntryExistsError):
        log.create(0, b"second")
    assert log.entry(0) == (b"first", stamp)
    assert os.listdir(folder) == [entry_name(0)]


def test_listing_begins_at_the_known_entry(log):
    stamps = filled(log, 5)
    assert log.since(3).stamps == {3: stamps[3], 4: stamps[4]}
    assert log.since(None).stamps == dict(enumerate(stamps))
    assert log.since(9).stamps.get(9) is None


def test_entry_made_again_has_another_stamp(log, folder):
    [stamp] = filled(log, 1)
    (folder / entry_name(0)).unlink()
    assert log.create(0, b"0") != stamp


def test_no_folder_is_an_empty_log(tmp_path):
    log = DiskLog(tmp_path / "nowhere")
    assert log.since(None).stamps == log.since(3).stamps == {}


@pytest.mark.parametrize("noted", [None, 1, 3, 4, "rubbish"])
def test_hole_is_seen_where_a_checkpoint_may_have_made_it(log, folder, noted):
    stamps = filled(log, 6)
    (folder / entry_name(3)).unlink()
    if noted is not None:
        note(folder, noted)
    behind = {4: stamps[4], 5: stamps[5]}
    seen = log.since(2).stamps
    assert {v: s for v, s in seen.items() if v > 2} == (behind if noted in (3, 4) else {})


def test_hole_behind_an_old_entry_is_seen_without_a_note(log, folder):
    filled(log, 6)
    (folder / entry_name(3)).unlink()
    os.utime(folder / entry_name(2), (0, 0))
    assert max(log.since(2).stamps) == 5


def test_checkpoint_in_parts_counts_when_it_is_whole(log, folder):
    for name in (
        "00000000000000000004.checkpoint.parquet",
        "00000000000000000007.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000007.checkpoint.0000000002.0000000002.parquet",
        "00000000000000000009.checkpoint.0000000001.0000000002.parquet",
    ):
        (folder / name).write_bytes(b"")
    found = log.since(None).checkpoints
    assert {version: len(parts) for version, parts in found.items()} == {4: 1, 7: 2}
