"""What a consumer says of partitions that it may be given: real tables in a folder, Kafka from memory, no Spark."""

from types import SimpleNamespace

import pytest

from kgs_core.ingest.driver.zone_bytes import ZoneBytes
from kgs_core.ingest.opening.owned_topics import NO_RULE
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.runtime import batch_loop
from kgs_core.runtime.batch_loop import BatchLoop
from kgs_core.runtime.membership_threads import SharedMembership
from kgs_core.runtime.throughput_log import ConsumerStatus
from tests.core.group.membership.membership_words import gives, member
from tests.core.ingest.test_owned_topics import MemoryKafka, consumer

T1, T2, BROKEN, OTHER = (TopicPartition(topic, 0) for topic in ("t1", "t2", "broken", "other"))


@pytest.fixture
def kafka():
    return MemoryKafka(*(tp.topic for tp in (T1, T2, BROKEN, OTHER)))


@pytest.fixture
def loop(kafka, tmp_path):
    topics = consumer(kafka, tmp_path)
    runner = SimpleNamespace(take_your_time=lambda: None, warm=lambda: None, warm_topic=lambda _: None)
    ingest = SimpleNamespace(round=lambda _: None, settle=lambda topics: None, late_since=None)
    reader = SimpleNamespace(topics=topics, runner=runner, ingest=ingest, zone_bytes=ZoneBytes(None, dict))
    return BatchLoop(reader, SharedMembership(member()), ConsumerStatus(ConsumerId(3), None), 0.0)


def step(loop, *assignments):
    """The report that is due after one more step of the loop."""
    loop._membership.change(lambda m: m.received(assignments, 0.0))
    loop._step()
    return loop._membership.now._report(1, 0.0)


def test_what_may_come_is_opened_and_reported_as_ready_or_with_the_reason_why_not(loop):
    report = step(loop, gives(5, T2, pending=[T1, BROKEN, OTHER]))
    assert report.owned == {T2}
    assert report.ready == {T1}
    assert report.unready.keys() == {BROKEN, OTHER}
    assert "nothing" in report.unready[BROKEN]
    assert NO_RULE in report.unready[OTHER]
    assert report.stopped == {}, "nothing that it owns stands still for it"


def test_what_fails_in_passing_is_ready_at_the_next_look(loop, kafka):
    kafka.away.add("t1")
    assert (step(loop, gives(5, pending=[T1])).ready, step(loop).unready) == (frozenset(), {T1: "no leader"})
    kafka.away.clear()
    report = step(loop)
    assert (report.ready, report.unready) == ({T1}, {})


def test_while_kafka_does_not_answer_nothing_is_reported_of_what_may_come(loop, kafka):
    kafka.is_away = True
    report = step(loop, gives(5, pending=[T1]))
    assert (report.ready, report.unready) == (frozenset(), {})


def test_kafka_that_is_slow_to_say_nothing_leaves_the_rounds_half_of_the_time(loop, kafka, monkeypatch):
    """Each question takes eight seconds to fail, and was due again before it had: one round after each."""
    clock = SimpleNamespace(now=0.0)
    describe = kafka.describe

    def slowly(topics):
        clock.now += 8.0
        return describe(topics)

    monkeypatch.setattr(batch_loop.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(kafka, "describe", slowly)
    loop._topics_refresh_s = 10.0
    kafka.is_away = True
    step(loop, gives(5, T1))
    clock.now += 7.9
    step(loop)
    assert kafka.asked == 1
    clock.now += 0.2
    step(loop)
    assert kafka.asked == 2


def test_what_is_not_pending_any_more_is_forgotten(loop):
    step(loop, gives(5, pending=[T1, BROKEN]))
    report = step(loop, gives(6))
    assert (report.ready, report.unready) == (frozenset(), {})
