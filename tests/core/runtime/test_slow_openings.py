"""A batch loop whose topics take long to open, or for ever: real tables in a folder, Kafka from memory, no Spark."""

import threading
import time
from types import SimpleNamespace

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.opening.owned_topics import OwnedTopics
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.runtime.batch_loop import BatchLoop
from kgs_core.runtime.membership_threads import SharedMembership
from kgs_core.runtime.throughput_log import ConsumerStatus
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.watchdog import RoundLimit
from tests.core.group.membership.membership_words import gives, member
from tests.core.ingest.test_owned_topics import MemoryKafka
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import kgs_yaml
from tests.waiting import wait_until

TOPICS = 40
TPS = [TopicPartition(f"t{n}", 0) for n in range(TOPICS)]


class SlowLake:
    """A lake whose tables of the topics in `stuck` do not answer until `answers` is set; the calls are counted."""

    def __init__(self, lake):
        self._lake = lake
        self.stuck = set()
        self.answers = threading.Event()
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._lake, name)

    def table(self, name, schema, *layout):
        table = self._lake.table(name, schema, *layout)
        create = table.create

        def late():
            self.asked.append(name)
            if name in self.stuck:
                assert self.answers.wait(60)
            create()

        table.create = late
        return table


class Rounds:
    """Rounds that only note which partitions they would read."""

    def __init__(self, topics):
        self._topics = topics
        self.read = []
        self.late_since = None

    def round(self, is_interrupted):
        self.is_interrupted = is_interrupted
        self.read.append(set(self._topics.positions()))

    def settle(self, topics=None):
        pass


@pytest.fixture
def lake(tmp_path):
    settings = kgs_yaml(tmp_path, {"pattern": "t.*"}, {"topic": "broken", "transform_arrow": "nothing:here"})
    lake = SlowLake(open_lake(settings.lake))
    lake.settings = settings
    yield lake
    lake.answers.set()


@pytest.fixture
def loop(lake):
    kafka = MemoryKafka()
    for tp in TPS:
        kafka.make(tp.topic, 1)
    topics = OwnedTopics(lake.settings, kafka, TopicOpener(lake.settings, lake, kafka, MemoryOffsets(), None))
    runner = SimpleNamespace(take_your_time=lambda: None, warm=lambda: None, warm_topic=lambda _: None)
    reader = SimpleNamespace(topics=topics, runner=runner, ingest=Rounds(topics), zone_bytes=ZoneBytes(None, dict))
    yield BatchLoop(reader, SharedMembership(member()), ConsumerStatus(ConsumerId(3), None), 10.0)
    lake.answers.set()
    topics.threads.close()


def step(loop, *assignments):
    loop._membership.change(lambda m: m.received(assignments, 0.0))
    stepped = threading.Thread(target=loop._step, daemon=True)
    stepped.start()
    stepped.join(30)
    assert not stepped.is_alive(), "the round waits for a topic that is being opened: the watchdog would end it"
    return loop._membership.now._report(1, 0.0)


def read(loop):
    return loop._reader.ingest.read[-1]


def step_until(loop, is_so):
    def one():
        step(loop)
        return is_so()

    wait_until(one, 60, "opened")


def test_round_does_not_wait_for_topics_that_do_not_open_and_reads_the_others(loop, lake):
    """Seen with 40 topics on a slow S3: opening counted as one round, the watchdog ended the process, for ever."""
    lake.stuck = {"t3", "t17"}
    report = step(loop, gives(5, *TPS))
    assert report.owned == set(TPS), "whatever it may commit later is reported from the first moment on"
    step_until(loop, lambda: len(read(loop)) == TOPICS - 2)
    assert loop._membership.now.busy_since is None
    lake.answers.set()
    step_until(loop, lambda: len(read(loop)) == TOPICS)


def test_topic_that_is_given_up_while_it_is_opened_is_let_go_at_once_and_never_comes_back(loop, lake):
    lake.stuck = {"t3"}
    step(loop, gives(5, *TPS[:5]))
    step_until(loop, lambda: len(read(loop)) == 4)
    report = step(loop, gives(6, *TPS[:3], TPS[4]))
    assert (report.applied, report.owned) == (6, {*TPS[:3], TPS[4]})
    lake.answers.set()
    wait_until(lambda: loop._topics.threads.is_idle, 30, "it came back")
    step(loop)
    assert "t3" not in loop._topics.states
    assert read(loop) == {*TPS[:3], TPS[4]}


def test_topic_that_was_given_up_and_given_again_is_read_from_where_its_table_stands_then(loop, lake):
    lake.stuck = {"t3"}
    step(loop, gives(5, TPS[3]))
    step(loop, gives(6))
    lake.stuck = set()
    step(loop, gives(7, TPS[3]))
    step_until(loop, lambda: bool(read(loop)))
    opened = loop._topics.states["t3"]
    lake.answers.set()
    wait_until(lambda: loop._topics.threads.is_idle, 30, "the first one came back")
    step(loop)
    assert loop._topics.states["t3"] is opened
    assert read(loop) == {TPS[3]}


def test_coming_topics_that_are_opened_early_count_as_ready_only_once_they_are_open(loop, lake):
    lake.stuck = {"t2"}
    step(loop, gives(5, pending=TPS[:3]))
    step_until(loop, lambda: len(loop._topics.openable(TPS[:3])) == 2)
    report = step(loop)
    assert (report.owned, report.ready, report.unready) == (frozenset(), {TPS[0], TPS[1]}, {})
    lake.answers.set()
    step_until(loop, lambda: loop._topics.openable(TPS[:3]) == set(TPS[:3]))
    assert step(loop, gives(6, *TPS[:3])).owned == set(TPS[:3])
    step_until(loop, lambda: read(loop) == set(TPS[:3]))


def test_batch_of_a_late_table_is_waited_for_where_its_partition_is_taken_away_and_nowhere_else(loop):
    """Reported as let go while its commit is under way, the next owner would begin too early."""
    ingest, told = loop._reader.ingest, []
    ingest.settle = lambda topics=None: told.append((topics, loop._membership.now.owned))
    step(loop, gives(5, *TPS[:3]))
    ingest.late_since = 7.0
    step(loop, gives(6, TPS[0], TPS[2], TPS[4]))
    assert told == [(set(), frozenset()), ({"t1"}, frozenset(TPS[:3]))], "while it is still reported as owned"
    assert loop._membership.now.busy_since == 7.0, "the watchdog counts from the round that it belongs to"
    ingest.late_since = None
    step(loop)
    assert loop._membership.now.busy_since is None


def test_a_round_is_told_of_an_assignment_or_a_signal_that_comes_while_it_lasts(loop):
    """Else it reads one more batch ahead, which is dropped, and the drain waits for it."""
    ingest, stop, told = loop._reader.ingest, StopFlag(), []
    step(loop, gives(5, *TPS[:3]))

    def interrupted(_is_interrupted):
        told.append(_is_interrupted())
        loop._membership.change(lambda m: m.received([gives(6, *TPS[:2])], 0.0))
        told.append(_is_interrupted())

    ingest.round = interrupted
    step_until(loop, lambda: told)
    assert told[:2] == [False, True]

    def stopped(is_interrupted):
        told.append(is_interrupted())
        stop.set()
        told.append(is_interrupted())

    ingest.round = stopped
    told.clear()
    loop._reader.attempt = lambda step, *_: step()
    loop.run(stop)
    assert told[:2] == [False, True]


def test_last_word_waits_for_late_tables_also_where_an_error_ends_the_loop(loop, monkeypatch):
    told = []
    loop._reader.ingest.settle = lambda topics=None: told.append(topics)

    def fails(*_):
        raise UnsafeError("boom")

    loop._reader.attempt = fails
    with pytest.raises(UnsafeError):
        loop.run(StopFlag())
    assert told == [None]


def test_limit_of_a_round_counts_from_the_round_that_something_is_still_in_hand_of():
    limit, now = RoundLimit(300.0), time.monotonic()
    limit.touch(now - 200)
    assert limit.reason(now + 90) is None
    assert limit.reason(now + 110) == "batch older than batch_timeout_s=300"
    limit.touch()
    assert limit.reason(now + 110) is None
