"""The group's topics when processes and brokers die, when transactions time out, and after compaction."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import FencedError, TransientError
from kgs_core.group.protocol import Tombstone
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics import controller_writer
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.group.view.group_view import GroupView
from kgs_core.kafka import producers
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import TopicPartition
from tests.system.group_topics import (
    A,
    B,
    C,
    Group,
    assignments_in,
    gives,
    group_on,
    heartbeat,
    member,
    messages_of,
    target,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(60)]

SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
KILLED = """
import os, signal, sys
from kgs_core.group.topics import controller_writer
from kgs_core.kafka import producers
from tests.system.group_topics import A, Group, gives, target

class Dying(producers.Producer):
    def commit_transaction(self, *timeout):
        if sys.argv[3] == "after":
            super().commit_transaction(*timeout)
        os.kill(os.getpid(), signal.SIGKILL)

producers.Producer = Dying
controller_writer.TRANSACTION_TIMEOUT_S = float(sys.argv[4])
Group(sys.argv[1], sys.argv[2]).writer().write(target("of the killed"), [gives(1, A)], [])
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that these tests may stop; it cleans up often."""
    with EmbeddedKafka.start(tmp_path_factory.mktemp("group-topics"), settings=SETTINGS, log=print) as kafka:
        yield kafka


@pytest.fixture
def group(own: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(own.bootstrap_servers, topic_prefix) as group:
        yield group


def die(group: Group, when: str, timeout_s: float = controller_writer.TRANSACTION_TIMEOUT_S) -> None:
    """A controller that kills itself before or after the commit of its first write."""
    arguments = [group.settings.kafka.bootstrap_servers, group.settings.group, when, str(timeout_s)]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_killed_before_the_commit_nothing_is_seen_and_the_next_controller_waits_for_nobody(group: Group) -> None:
    group.writer().write(target("before"), [gives(2, B)], [])
    die(group, "before")
    ends = group.admin.offsets(group.topics.partitions(GroupTopic.ASSIGNMENTS), "latest")
    assert ends[TopicPartition(group.name(GroupTopic.ASSIGNMENTS), 1)] == 1, "it was sent"
    writer = group.writer()
    reader = group.reader(timeout_s=5)
    assert {*map(repr, messages_of(reader.read_to_end()))} == {*map(repr, [target("before"), gives(2, B)])}
    writer.write(target("after"), [gives(1, C)], [])
    found = []
    wait_until(lambda: found.extend(reader.poll(1)) or len(found) == 2, 20, "the new ones")
    assert {*map(repr, messages_of(found))} == {*map(repr, [target("after"), gives(1, C)])}


def test_killed_before_the_commit_readers_go_on_when_the_transaction_has_timed_out(group: Group) -> None:
    die(group, "before", 8.0)
    with pytest.raises(TransientError, match="still open"):
        group.reader(timeout_s=0.5).read_to_end()
    assert group.reader(timeout_s=30).read_to_end() == []


def test_killed_after_the_commit_all_of_it_is_there(group: Group) -> None:
    die(group, "after")
    group.writer()
    assert {*map(repr, messages_of(group.reader(timeout_s=5).read_to_end()))} == {
        *map(repr, [target("of the killed"), gives(1, A)])
    }


def test_without_a_broker_everything_is_transient_and_then_goes_on(own: EmbeddedKafka, group: Group) -> None:
    group.admin = KafkaAdmin(admin_client(group.settings), timeout_s=1.5)
    writer, reader, assignments, reports = (
        group.writer(),
        group.reader(),
        group.assignment_reader(1),
        group.report_writer(),
    )
    writer.write(target("before"), [gives(1, A)], [])
    reports.append(heartbeat(1, 1), 10)
    reader.read_to_end()
    assert messages_of(wait_until(lambda: assignments.newest(1), 20, "the assignment")) == [gives(1, A)]
    own.nodes[0].kill()
    began = time.monotonic()
    for act in (
        lambda: writer.write(target("lost"), [gives(1, B)], []),
        writer.fence,
        reader.read_to_end,
        lambda: reports.append(heartbeat(1, 2), 1),
        lambda: reports.append(heartbeat(1, 3), 1),
        lambda: wait_until(lambda: reader.poll(0.5), 30, "silence is noticed"),
        lambda: wait_until(lambda: assignments.newest(0.5), 30, "silence is noticed"),
    ):
        with pytest.raises(TransientError, match=r"^(Kafka|controller of group) "):
            act()
        print(f"{time.monotonic() - began:.1f} s")
    own.restart(own.nodes[0])
    wait_until(lambda: succeeds(writer.fence), 60, "the right to write is taken again")
    assert {*map(repr, messages_of(reader.read_to_end()))} == {
        *map(repr, [target("before"), gives(1, A), heartbeat(1, 1)])
    }
    writer.write(target("after"), [gives(1, C)], [])
    reports.append(heartbeat(1, 4), 20)
    found = []
    wait_until(lambda: found.extend(reader.poll(1)) or len(found) == 3, 30, "what is new")
    assert {*map(repr, messages_of(found))} == {*map(repr, [target("after"), gives(1, C), heartbeat(1, 4)])}
    assert messages_of(wait_until(lambda: assignments.newest(1), 20, "the assignment")) == [gives(1, C)]


def freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, 10, "the broker stands still")


def succeeds(act: object) -> bool:
    try:
        act()  # type: ignore[operator]
    except TransientError:
        return False
    return True


def test_of_reports_that_a_frozen_broker_holds_up_the_newest_counts_wherever_it_stands(
    own: EmbeddedKafka, group: Group
) -> None:
    """One that was given up may still come, even behind a later one: nobody is to take it for the newest then."""
    reports, pid = group.report_writer(), own.nodes[0].pid
    assert pid is not None
    reports.append(heartbeat(1, 1), 10)
    freeze(pid)
    try:
        for sequence in (2, 3):
            with pytest.raises(TransientError, match=r"no answer in 0\.5 s"):
                reports.append(heartbeat(1, sequence), 0.5)
    finally:
        os.kill(pid, signal.SIGCONT)
    reports.append(heartbeat(1, 4), 30)
    group.produce(GroupTopic.REPORTS, 0, encode(heartbeat(1, 3)))  # as if its packet had lain about for longer
    records = group.reader().read_to_end()
    *sequences, late = [m.sequence for m in messages_of(records)]  # type: ignore[union-attr]
    assert (sequences[0], late) == (1, 3)
    assert sorted(sequences) in ([1, 4], [1, 2, 4], [1, 3, 4], [1, 2, 3, 4])  # each at most once
    assert GroupView().take_all(records, 0.0).members[member(1).incarnation].sequence == 4


class Slow(Producer):
    """Asleep before the commit until the coordinator has ended the transaction."""

    reader = None

    def commit_transaction(self, *timeout: float) -> None:
        assert Slow.reader is not None
        assert assignments_in(Slow.reader.read_to_end()) == []
        super().commit_transaction(*timeout)


def test_a_transaction_that_timed_out_is_no_proof_of_a_newer_controller(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_writer, "TRANSACTION_TIMEOUT_S", 1.5)
    monkeypatch.setattr(controller_writer, "WRITE_TIMEOUT_S", 1.0)
    monkeypatch.setattr(producers, "Producer", Slow)
    writer = group.writer()
    monkeypatch.setattr(Slow, "reader", group.reader())
    with pytest.raises(TransientError, match=r"its transaction was open for .* fence, read to the end, decide again"):
        writer.write(target("late"), [gives(1, A)], [])
    with pytest.raises(TransientError, match="no right to write"):
        writer.write(target("late"), [gives(1, A)], [])
    monkeypatch.setattr(producers, "Producer", Producer)
    writer.fence()
    assert group.reader().read_to_end() == []
    writer.write(target("in time"), [gives(1, B)], [])
    assert assignments_in(group.reader().read_to_end()) == [gives(1, B)]


class Unanswered(Producer):
    """The broker stands still before the commit reaches it, or the commit never does."""

    pid = 0
    is_sent = True

    def commit_transaction(self, *timeout: float) -> None:
        if not Unanswered.is_sent:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, retriable=True))
        freeze(Unanswered.pid)
        super().commit_transaction(*timeout)


@pytest.mark.parametrize("is_sent", [False, True], ids=["it is lost on its way", "it arrives later"])
def test_a_commit_without_an_answer_is_unknown_until_the_right_to_write_is_taken_again(
    own: EmbeddedKafka, group: Group, monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    monkeypatch.setattr(Unanswered, "is_sent", is_sent)
    monkeypatch.setattr(producers, "Producer", Unanswered)
    monkeypatch.setattr(controller_writer, "WRITE_TIMEOUT_S", 2.0)
    writer, Unanswered.pid = group.writer(), own.nodes[0].pid or 0
    try:
        with pytest.raises(TransientError, match="it may be written or not: fence, read to the end, decide again"):
            writer.write(target("unknown"), [gives(1, A)], [])
    finally:
        os.kill(Unanswered.pid, signal.SIGCONT)
    writer.fence()
    first = messages_of(group.reader().read_to_end())
    assert {*map(repr, first)} == ({*map(repr, [target("unknown"), gives(1, A)])} if is_sent else set())
    assert messages_of(group.reader().read_to_end()) == first


class Overtaken(Producer):
    """Another controller fences between the last record and the commit."""

    group: "Group | None" = None

    def commit_transaction(self, *timeout: float) -> None:
        assert Overtaken.group is not None
        group, Overtaken.group = Overtaken.group, None
        producers.Producer = Producer  # type: ignore[misc]
        group.writer().write(target("newer"), [gives(1, B)], [])
        super().commit_transaction(*timeout)


def test_fenced_between_the_last_record_and_the_commit(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "Producer", Overtaken)
    writer = group.writer()
    Overtaken.group = group
    with pytest.raises(FencedError, match="a newer controller has taken over"):
        writer.write(target("older"), [gives(1, A), gives(2, A)], [])
    assert {*map(repr, messages_of(group.reader().read_to_end()))} == {*map(repr, [target("newer"), gives(1, B)])}


def test_after_compaction_the_newest_of_each_key_is_read_and_what_tombstones_removed_is_not(
    own: EmbeddedKafka, group: Group
) -> None:
    assignments = group.name(GroupTopic.ASSIGNMENTS)
    resource = ConfigResource(ConfigResource.Type.TOPIC, assignments)
    for name, value in {"segment.ms": "50", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}.items():
        resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient({"bootstrap.servers": own.bootstrap_servers})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(20)
    writer, reader = group.writer(), group.reader()
    early = group.reader()
    early.read_to_end()
    writer.write(target("0"), [gives(1, A, incarnation="dead"), gives(1, B)], [])
    writer.write(None, [], [Tombstone(member(1, "dead"))])
    polled = []

    def compacted() -> bool:
        """Every write begins a new segment, which lets the cleaner have the ones before."""
        writer.write(target(str(len(polled))), [gives(1, C), gives(2, C)], [])
        polled.extend(early.poll(5))
        read = reader.read_to_end()
        return not any(m.member == member(1, "dead") for m in assignments_in(read)) and len(read) < len(polled)

    wait_until(compacted, 60, "the cleaner has run")
    read = assignments_in(reader.read_to_end())
    assert read[-1] in (gives(1, C), gives(2, C))
    assert {*map(repr, read)} == {repr(gives(1, C)), repr(gives(2, C))}
    # Whoever reads along has seen everything, the tombstone with it
    wait_until(lambda: polled.extend(early.poll(0.5)) or assignments_in(polled)[-1:] != [], 20, "all of it")
    assert Tombstone(member(1, "dead")) in assignments_in(polled)
    assert [each.offset for each in polled if each.message == gives(1, B)] == [1]
