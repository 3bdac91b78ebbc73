"""Reading a log for all application ids."""

import threading

import pytest
from deltalake import DeltaTable

from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.rule.table_owner import STARTS
from tests.sink import Sink


def advance(sink, count):
    for _ in range(count):
        position = sink.table.stored_position(0)
        batch = sink.read({0: (position, position + 1)}, {0: None})
        sink.table._rows.commit({sink.ids.position(0): position}, {sink.ids.position(0): position + 1}, batch.files)


def test_table_without_positions_has_none(storage):
    sink = Sink(storage)
    sink.table.open()
    assert load_transactions(storage, "t") == {}
    DeltaTable(storage.uri("t")).create_checkpoint()
    assert load_transactions(storage, "t") == {}


@pytest.mark.parametrize("commits", [1, 4, 5, 6, 11])
def test_newest_version_counts_with_and_without_checkpoints(storage, commits):
    sink = Sink(storage, checkpoint_interval=5).started(2)
    advance(sink, commits)
    expected = {"g/t@id1/0": commits, "g/t@id1/0/start": 0, "g/t@id1/1": 0, "g/t@id1/1/start": 0}
    assert load_transactions(storage, "t") == {**expected, STARTS: 1}


def test_log_can_be_read_while_others_commit_and_clean_up(storage):
    sink = Sink(storage, checkpoint_interval=2).started(1)
    stop = threading.Event()

    def write():
        writer = Sink(storage)
        while not stop.is_set():
            advance(writer, 1)
            DeltaTable(storage.uri("t")).cleanup_metadata()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = [load_transactions(storage, "t")["g/t@id1/0"] for _ in range(150)]
    finally:
        stop.set()
        thread.join()
    assert seen == sorted(seen)
    assert seen[-1] > 0
    assert sink.table.stored_position(0) >= seen[-1]
