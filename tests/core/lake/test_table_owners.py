"""A table belongs to one group: who may begin to fill it, also when two begin at once."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.rule.table_owner import owners
from kgs_core.lake.topics import topic_table
from tests.sink import Sink


def test_table_that_another_group_fills_is_refused_by_name_before_the_first_commit(storage, sink):
    sink.ingest({0: (0, 10)})
    before = load_transactions(storage, "t")
    with pytest.raises(UnsafeError, match=r"table t: group g fills it \(from t\): .* kgs adopt --from-group g"):
        Sink(storage, group="h").started(2)
    assert load_transactions(storage, "t") == before


def test_of_two_groups_that_begin_at_once_one_is_refused(storage, monkeypatch):
    """Both have looked, and seen nobody, before either commits."""
    barrier = threading.Barrier(2)
    look = topic_table.refuse_other_groups

    def both_look_first(*args):
        found = look(*args)
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(30)
            barrier.abort()  # the second look of who was refused waits for nobody
        return found

    monkeypatch.setattr(topic_table, "refuse_other_groups", both_look_first)
    sinks = [Sink(storage, group=group) for group in ("g", "h")]
    for sink in sinks:
        sink.table.open()
    with ThreadPoolExecutor(2) as pool:
        starts = [pool.submit(sink.started, 2) for sink in sinks]
        errors = [start.exception() for start in starts]
    [refused] = [error for error in errors if error is not None]
    assert isinstance(refused, UnsafeError)
    assert len(owners(load_transactions(storage, "t"))) == 1


def test_one_group_fills_a_table_from_several_topics(storage, sink):
    Sink(storage, topic="u", topic_id="id9").started(1)
    assert owners(load_transactions(storage, "t")) == {"g": ("t", "u")}


def test_commits_of_a_groups_topics_in_one_table_do_not_meet(storage, sink):
    """What guards the first commit is in no later one: else every commit of a table would refuse its neighbours."""
    sink.ingest({0: (0, 10)})
    assert load_transactions(storage, "t")["kgs/starts"] == 1
