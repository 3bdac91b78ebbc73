"""Real consumers as members of a group whose controller the test plays: hand-over, ends, deaths, silence."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad, steady
from kgs_core import __version__
from kgs_core.config.settings import config_hash
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import Ending, Incarnation, Member, Phase
from kgs_core.model import TopicPartition
from kgs_core.system.process_identity import boot_id, start_ticks
from tests.failpoints import crash_at
from tests.system.director import Director, commit_times, wait_commits
from tests.system.pipeline import ConsumerProcess, Pipeline, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(15), pytest.mark.timeout(900)]
PARTITIONS = 3
HAND_OVERS = 4
Tps = frozenset[TopicPartition]


@pytest.fixture
def director(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Director]:
    rules = [{"topic": f"{topic_prefix}{name}"} for name in ("a", "b")]
    rules.append({"topic": f"{topic_prefix}broken", "transform_arrow": "hooks:missing"})
    rules.append({"topic": f"{topic_prefix}raises", "transform_arrow": "hooks:arrow_late"})
    rules.append({"topic": f"{topic_prefix}transformed", "transform": "hooks:spark_same"})
    director = Director(Pipeline(tmp_path, kafka.bootstrap_servers, rules))
    yield director
    director.close()


def topics_of(director: Director, *names: str) -> list[str]:
    """Topics of the configuration, made."""
    topics = [str(rule.topic) for rule in director.settings.topics if str(rule.topic).endswith(names)]
    for topic in topics:
        director.pipeline.admin.create_topic(topic, PARTITIONS)
    return topics


def partitions_of(*topics: str) -> Tps:
    return frozenset(TopicPartition(topic, p) for topic in topics for p in range(PARTITIONS))


def gaps_ms(director: Director, moved: Tps, at: float) -> str:
    """For how long each partition was not committed around its hand-over at `at`."""
    found = []
    for tp in sorted(moved):
        times = commit_times(director.pipeline.lake, tp)
        found.append(max(later - earlier for earlier, later in pairwise(times) if later > at))
    return ", ".join(f"{gap * 1e3:.0f}" for gap in found)


def assert_describes(director: Director, member: Member, process: ConsumerProcess) -> None:
    """The first report of a new member."""
    report = next(r.message for r in director.reports if r.message.member == member)
    assert (report.phase, report.owned, report.applied, report.sequence) == (Phase.READING, frozenset(), None, 1)
    said = HostProcess.of(report.process)
    assert said is not None
    assert (said.pid, said.boot_id) == (process.process.pid, boot_id())
    assert said.start_ticks == start_ticks(process.process.pid)
    assert (report.version, report.config_hash) == (__version__, config_hash(director.settings))


def now() -> float:
    """The clock that commits are stamped with."""
    return time.time()  # noqa: TID251 - as above


def move_there_and_back(director: Director, moved: Tps, one: Member, two: Member) -> list[str]:
    """Hand over again and again; what each took."""
    told = []
    for number in range(HAND_OVERS):
        giver, gainer = (one, two) if number % 2 == 0 else (two, one)
        announced = number >= HAND_OVERS // 2
        at = now()
        seconds = director.hand_over(moved, giver, gainer, announced=announced)
        wait_commits(director.pipeline.lake, moved, now())
        report = director.last(giver)
        assert report is not None
        told.append(
            f"hand-over {number + 1}, {'announced' if announced else 'by surprise'}: partitions unread for "
            f"{gaps_ms(director, moved, at)} ms; assignments and reports {seconds * 1e3:.0f} ms, "
            f"drain {(report.last_drain_s or 0) * 1e3:.0f} ms"
        )
    return told


def supersede(director: Director, member: Member, process: ConsumerProcess, tps: Tps) -> None:
    """The controller gives to a later process of the same number."""
    director.assignment(Member(member.consumer, Incarnation("newer")), pending=tps)
    assert director.wait_ended(member).owned == frozenset()
    assert process.process.wait(60) == 0, process.tail()
    assert f"why={Ending.SUPERSEDED}" in process.tail()


@pytest.mark.spark
@pytest.mark.slow(60)
def test_partitions_move_between_two_consumers_under_load(director: Director, capsys: pytest.CaptureFixture) -> None:
    """There and back, by surprise and announced, while records come in all the time."""
    pipeline = director.pipeline
    topics = topics_of(director, "a", "b", "transformed")
    everything, moved = partitions_of(*topics), partitions_of(*topics[1:])
    with director.consumer(1) as first, director.consumer(2) as second:
        one, two = director.joined(first), director.joined(second)
        assert_describes(director, one, first)
        assert_describes(director, two, second)
        with ExitStack() as load:
            for topic in topics:
                load.enter_context(KnownLoad(pipeline.bootstrap, topic, steady(30_000.0)))
            director.give(one, everything)
            wait_commits(pipeline.lake, everything, 0)
            told = move_there_and_back(director, moved, one, two)
            with capsys.disabled():
                print("\n" + "\n".join(told))
            beat = director.beats[one]
            director.wait(lambda: director.beats[one].sequence > beat.sequence + 3, "it goes on saying that it lives")
            assert director.beats[one].bytes_per_s > 0
            report = director.last(one)
            assert (report.drains, report.max_drain_s >= report.last_drain_s > 0) == (HAND_OVERS // 2, True)
            director.hand_over(moved, one, two, announced=True)
            supersede(director, two, second, moved)
            director.give(one, everything)
        director.assert_single_owner()
        pipeline.wait_caught_up(topics)
        first.terminate()
        assert director.wait_ended(one).owned == frozenset()
    for topic in topics:
        pipeline.assert_exact(topic)
    pipeline.assert_audit_is_clean()


@contextmanager
def some_parent() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does nothing."""
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    try:
        yield parent
    finally:
        parent.kill()
        parent.wait()


def test_what_cannot_be_read_stays_owned_and_is_reported_with_its_reason(director: Director) -> None:
    """And the consumer ends with the process that it is tied to, after the batch in hand."""
    topics = topics_of(director, "a", "broken", "raises")
    good, broken, raises = (partitions_of(topic) for topic in topics)
    missing = frozenset({TopicPartition(topics[0], PARTITIONS + 4), TopicPartition("no-such-topic", 0)})
    produce(director.pipeline.bootstrap, topics[0], [b"x"] * 1000)
    produce(director.pipeline.bootstrap, topics[2], [b"x"] * 100)
    with some_parent() as parent, director.consumer(1, "--end-with", str(parent.pid)) as consumer:
        member = director.joined(consumer)
        director.assignment(member, good | broken | raises | missing)
        director.wait(lambda: len(director.last(member).stopped) == 8, "eight partitions stand still")
        report = director.last(member)
        assert report.owned == good | broken | raises | missing
        assert set(report.stopped) == broken | raises | missing
        assert all("no rows, please" in report.stopped[tp] for tp in raises)
        director.pipeline.wait_caught_up(topics[:1])
        consumer.assert_alive()
        parent.kill()
        parent.wait()
        assert director.wait_ended(member).owned == frozenset()
        assert consumer.process.wait(60) == 0, consumer.tail()
    director.pipeline.assert_exact(topics[0])


@pytest.mark.chaos
@pytest.mark.parametrize("point", ["assignment-applied:1", "before-report:2", "after-report:2"])
def test_killed_between_an_assignment_and_its_report(director: Director, tmp_path: Path, point: str) -> None:
    """All that it could have committed is in its last report or an assignment behind it; the next life owns nothing."""
    pipeline = director.pipeline
    topics = topics_of(director, "a")
    everything = partitions_of(*topics)
    produce(pipeline.bootstrap, topics[0], [b"x"] * 3000)
    with director.consumer(1, **crash_at(point, tmp_path)) as consumer:
        member = director.joined(consumer)
        offset = director.assignment(member, everything)
        wait_until(lambda: consumer.process.poll() is not None, 120, f"dead at {point}: {consumer.tail()}")
        assert consumer.process.returncode == -signal.SIGKILL, consumer.tail()
    with director.consumer(1) as again:
        reborn = director.joined(again)
        report = director.last(member)
        said_it = point.startswith("after-report")
        assert (report.applied, report.owned) == ((offset, everything) if said_it else (None, frozenset()))
        assert reborn.incarnation != member.incarnation
        assert_describes(director, reborn, again)
        director.give(reborn, everything)
        produce(pipeline.bootstrap, topics[0], [b"y"] * 3000)
        pipeline.wait_caught_up(topics)
        director.assignment(reborn, retire=True)
        assert director.wait_ended(reborn).owned == frozenset()
        assert again.process.wait(60) == 0, again.tail()
    pipeline.assert_exact(topics[0])


@pytest.mark.chaos
@pytest.mark.slow(30)
def test_waits_for_kafka_however_long_it_is_gone(tmp_path: Path, topic_prefix: str) -> None:
    """Kafka is gone for more than 3 x suspect_after_s. Who commits nothing meanwhile disturbs nobody."""
    (tmp_path / "kafka").mkdir()
    (tmp_path / "group").mkdir()
    with EmbeddedKafka.start(tmp_path / "kafka", log=print) as kafka:
        pipeline = Pipeline(tmp_path / "group", kafka.bootstrap_servers, [{"topic": f"{topic_prefix}a"}])
        director = Director(pipeline, suspect_after_s=2.0)
        topics = topics_of(director, "a")
        with director.consumer(1) as consumer:
            member = director.joined(consumer)
            director.give(member, partitions_of(*topics))
            produce(kafka.bootstrap_servers, topics[0], [b"x"] * 1000)
            pipeline.wait_caught_up(topics)
            director.close()
            kafka.nodes[0].kill()
            with pytest.raises(subprocess.TimeoutExpired):
                consumer.process.wait(8)
            kafka.restart(kafka.nodes[0])
            produce(kafka.bootstrap_servers, topics[0], [b"y"] * 1000)
            pipeline.wait_caught_up(topics)
            assert "ending this process" not in consumer.log.read_text()
        pipeline.assert_exact(topics[0])
