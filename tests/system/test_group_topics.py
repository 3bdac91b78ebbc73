"""The group's topics on a real broker: what is written is read, all of it or nothing, and by the newest alone."""

import itertools
import random
import threading
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import FencedError, PermanentError, TransientError, UnsafeError
from kgs_core.group.protocol import MemberAssignment, Target, Tombstone
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.operator_topic import OperatorTopicWriter
from kgs_core.group.topics.reader import GroupReader, ReadMessage
from kgs_core.group.topics.topics import METADATA_PARTITIONS, GroupTopic
from kgs_core.model import TopicPartition
from kgs_core.runtime.fencings import Fencings
from tests.system.group_topics import (
    DESIRED,
    WANTED,
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
    report,
    target,
)
from tests.topics import create_partitions, delete_records
from tests.waiting import wait_until


@pytest.fixture
def group(kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        yield group


def test_what_everybody_writes_is_what_the_reader_reads(group: Group) -> None:
    with_tombstone = [gives(1, A, B), gives(2, C), gives(3)]
    writer, port, newest_writer = group.writer(), group.report_writer(), OperatorTopicWriter(group.topics)
    written = writer.write(target("first", member(1)), with_tombstone, [Tombstone(member(3, "gone"))])
    desired = [newest_writer.write(DESIRED), newest_writer.write(WANTED)]
    port.append(report(1, 1, A, B), 10)
    port.append(heartbeat(1, 2), 10)
    assert messages_of(written) == [target("first", member(1)), *with_tombstone, Tombstone(member(3, "gone"))]
    assert [each.offset for each in written] == [0, 0, 0, 0, 1]
    assert written[0].timestamp_ms > 1_700_000_000_000
    read = group.reader().read_to_end()
    reports = [each for each in read if each not in [*written, *desired]]
    assert [each for each in read if each in written and not isinstance(each.message, Target)] == written[1:]
    assert written[0] in read
    assert [each for each in read if each in desired] == desired == newest_writer.read()
    assert messages_of(reports) == [report(1, 1, A, B), heartbeat(1, 2)]
    assert len(read) == len(written) + 4
    newest_writer.close()


def test_poll_goes_on_where_the_end_was_and_a_second_reading_begins_anew(group: Group) -> None:
    writer, port, reader = group.writer(), group.report_writer(), group.reader()
    with pytest.raises(TransientError, match="not read to their ends yet"):
        reader.poll(0)
    writer.write(None, [gives(1, A)], [])
    assert messages_of(reader.read_to_end()) == [gives(1, A)]
    assert reader.poll(0) == []
    writer.write(None, [gives(1, A, B)], [])
    for sequence in range(1, 4):
        port.append(heartbeat(1, sequence), 10)
    found = []
    wait_until(lambda: found.extend(reader.poll(1)) or len(found) == 4, 20, "all four")
    assert assignments_in(found) == [gives(1, A, B)]
    assert [m.sequence for m in messages_of(found) if m == heartbeat(1, getattr(m, "sequence", 0))] == [1, 2, 3]
    assert assignments_in(reader.read_to_end()) == [gives(1, A), gives(1, A, B)]
    assert reader.poll(0) == []


def test_the_end_of_empty_topics(group: Group) -> None:
    reader = group.reader()
    assert reader.read_to_end() == []
    assert reader.poll(0.1) == []
    group.writer().write(target(), [], [])
    assert messages_of(wait_until(lambda: reader.poll(1), 20, "the Target")) == [target()]


def test_a_write_of_nothing_needs_no_right_to_write(group: Group) -> None:
    assert group.writer(fenced=False).write(None, [], []) == []
    with pytest.raises(TransientError, match="no right to write: fence"):
        group.writer(fenced=False).write(target(), [], [])


def test_an_aborted_transaction_at_the_end_holds_up_nobody(group: Group) -> None:
    group.writer().write(target(), [gives(1, A)], [])
    with group.transaction(gives(1, B), gives(2, C)) as other:
        other.abort_transaction(20)
    reader = group.reader(timeout_s=20)
    assert {*map(repr, messages_of(reader.read_to_end()))} == {*map(repr, [target(), gives(1, A)])}
    with group.transaction(gives(2, C)) as other:
        other.abort_transaction(20)
    assert reader.poll(0.5) == []


def test_an_open_transaction_is_waited_for(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """An assignment behind it would be missed, and with it what a consumer may own.

    The second reader has asked for the ends before the transaction is over: which ends it asks for is what counts.
    """
    looked = threading.Event()
    take_up_to = GroupReader.take_up_to

    def tell(reader: GroupReader, ends: Mapping[TopicPartition, int], timeout_s: float) -> list[ReadMessage]:
        looked.set()
        return take_up_to(reader, ends, timeout_s)

    writer = group.writer()
    read = []
    with group.transaction(gives(1, A)) as other:
        writer.write(None, [gives(1, B)], [])
        with pytest.raises(TransientError, match=r"metadata:1 after 1 s: .*transaction that is still open"):
            group.reader(timeout_s=1).read_to_end()
        topic_reader = group.reader(timeout_s=30)
        reading = threading.Thread(target=lambda: read.extend(topic_reader.read_to_end()))
        monkeypatch.setattr(GroupReader, "take_up_to", tell)
        reading.start()
        assert looked.wait(20)
        assert read == []
        other.commit_transaction(20)
        reading.join(30)
    assert assignments_in(read) == [gives(1, A), gives(1, B)]


def test_of_two_controllers_the_older_one_is_at_its_end(group: Group) -> None:
    fencings = Fencings(group.settings)
    older, reader = group.writer(), group.reader()
    fencings.look()
    older.write(target("older"), [gives(1, A)], [])
    fencings.look()
    assert fencings.count == 0
    newer = group.writer()
    fencings.look()
    assert fencings.count == 1
    fencings.close()
    with pytest.raises(FencedError, match=f"^controller of group {group.settings.group}: a newer controller has taken"):
        older.write(target("too late"), [gives(1, B), gives(2, B)], [Tombstone(member(1))])
    with pytest.raises(FencedError):
        older.write(target("too late"), [gives(1, B)], [])
    with pytest.raises(FencedError):
        older.fence()
    assert messages_of(reader.read_to_end()) == [target("older"), gives(1, A)]
    newer.write(target("newer"), [gives(1)], [])
    found = messages_of(group.reader().read_to_end())
    assert [m for m in found if isinstance(m, Target)] == [target("older"), target("newer")]
    assert assignments_in(group.reader().read_to_end()) == [gives(1, A), gives(1)]


def test_records_that_are_no_message_are_counted_and_logged_once(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    good = encode(gives(1, A))
    bad_version = (good[0], (good[1] or b"").replace(b'"version":1', b'"version":99'))
    group.produce(
        GroupTopic.ASSIGNMENTS, 1, bad_version, bad_version, (good[0], b"\xff"), (b"k", b"{}"), (b"?", None), good
    )
    reader = group.reader()
    assert messages_of(reader.read_to_end()) == [gives(1, A)]
    assert reader._refusals.count == 5
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(lines) == len(set(lines)) < 5
    group.produce(GroupTopic.ASSIGNMENTS, 1, bad_version)
    group.writer().write(None, [gives(1)], [])
    assert messages_of(wait_until(lambda: reader.poll(1), 20, "the assignment behind")) == [gives(1)]
    assert reader._refusals.count == 6


def test_what_a_role_may_not_write_it_cannot_say_in_its_own_topic(group: Group) -> None:
    """A consumer has the right to write reports: nothing that it puts there can pass for an assignment."""
    group.produce(GroupTopic.REPORTS, 0, encode(gives(1, A)), encode(target()), encode(DESIRED), encode(report(1, 1)))
    group.produce(GroupTopic.OPERATOR, 0, encode(target()), encode(report(1, 1)), encode(WANTED))
    group.produce(GroupTopic.ASSIGNMENTS, 0, encode(gives(1, A)))
    group.produce(GroupTopic.ASSIGNMENTS, 2, encode(gives(1, A)), encode(target()), encode(Tombstone(member(1))))
    reader = group.reader()
    assert {*map(repr, messages_of(reader.read_to_end()))} == {repr(report(1, 1)), repr(WANTED)}
    assert reader._refusals.count == 9


def test_a_queue_gives_out_what_is_assigned_after_its_opening(group: Group) -> None:
    writer = group.writer()
    writer.write(target(), [gives(1, A), gives(2, B)], [])
    port = group.assignment_reader(1)
    # Written before the client has fetched anything: the place was fixed by the constructor
    writer.write(target("second"), [gives(1, A, B), gives(2)], [Tombstone(member(1, "gone"))])
    writer.write(None, [gives(1, incarnation="later")], [])
    found = []
    wait_until(lambda: found.extend(port.newest(1)) or len(found) == 2, 20, "two assignments")
    assert messages_of(found) == [gives(1, A, B), gives(1, incarnation="later")]
    assert found[0].offset < found[1].offset
    assert port.newest(0) == []
    assert port._refusals.count == 0


def test_what_stands_in_a_transaction_when_the_queue_is_opened_is_not_given_out(group: Group) -> None:
    """It cannot be for this process, which nobody knows yet; it would look like an assignment to a newer one."""
    with group.transaction(gives(1, A, incarnation="earlier")) as other:
        port = group.assignment_reader(1)
        key, value = encode(gives(1, B))
        other.produce(group.name(GroupTopic.ASSIGNMENTS), value, key, 1)
        assert port.newest(0.5) == []
        other.commit_transaction(20)
    assert messages_of(wait_until(lambda: port.newest(1), 20, "the assignment")) == [gives(1, B)]


def test_consumers_beyond_the_partitions_share_them_and_each_reads_its_own(group: Group) -> None:
    both = {number: group.assignment_reader(number) for number in (1, METADATA_PARTITIONS)}
    group.writer().write(target(), [gives(1, A), gives(METADATA_PARTITIONS, B)], [])
    for number, given in ((1, A), (METADATA_PARTITIONS, B)):
        found = wait_until(lambda number=number: both[number].newest(1.0), 20, "its Assignment")
        assert [each.message for each in found] == [gives(number, given)]


def test_partitions_added_later_are_used_by_whoever_starts_after_that(group: Group) -> None:
    """They are shared out anew: who has shared out fewer ends."""
    before = group.reader()
    before.read_to_end()
    create_partitions(group.admin, group.name(GroupTopic.ASSIGNMENTS), METADATA_PARTITIONS + 2)
    group.writer().write(None, [gives(METADATA_PARTITIONS + 1, A)], [])
    assert messages_of(group.reader().read_to_end()) == [gives(METADATA_PARTITIONS + 1, A)]
    with pytest.raises(UnsafeError, match="had 64 partitions, has 66: start this process again"):
        before.read_to_end()


def test_a_message_that_is_too_large_is_named_and_nothing_of_its_write_stays(
    group: Group, kafka: EmbeddedKafka
) -> None:
    topic = ConfigResource(ConfigResource.Type.TOPIC, group.name(GroupTopic.ASSIGNMENTS))
    topic.add_incremental_config(ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for answer in admin.incremental_alter_configs([topic]).values():
        answer.result(20)
    writer = group.writer()
    draw = random.Random(1)
    many = [TopicPartition(f"topic-{draw.getrandbits(64):x}", n) for n in range(1000)]
    large = MemberAssignment(member(2), frozenset(many))
    with pytest.raises(PermanentError, match=f"MemberAssignment of {member(2)}.*max.message.bytes"):
        writer.write(target(), [gives(1, A), large], [])
    with pytest.raises(TransientError, match="no right to write: fence"):
        writer.write(None, [gives(1, B)], [])
    writer.fence()
    assert group.reader().read_to_end() == []
    writer.write(None, [gives(1, B)], [])
    assert messages_of(group.reader().read_to_end()) == [gives(1, B)]


def test_reports_that_retention_took_are_passed_over(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    port, reader = group.report_writer(), group.reader()
    reader.read_to_end()
    tp = TopicPartition(group.name(GroupTopic.REPORTS), 0)
    for sequence in range(1, 6):
        port.append(heartbeat(1, sequence), 10)
    delete_records(group.admin, {tp: 3})
    found = []
    wait_until(lambda: found.extend(reader.poll(1)) or (found and found[-1].message == heartbeat(1, 5)), 30, "the last")
    sequences = [each.message.sequence for each in found]  # type: ignore[union-attr]
    # The client may have fetched some of the first ones before they went
    assert (sequences, sequences[-2:]) == (sorted(set(sequences)), [4, 5])
    assert messages_of(group.reader().read_to_end()) == [heartbeat(1, 4), heartbeat(1, 5)]
    if sequences == [4, 5]:
        assert "offset 0 is gone: read again from 3" in caplog.text


def test_reports_are_read_from_a_little_before_the_newest(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgs_core.group.topics.topic_reader.REPORTS_BACK_MS", 300)
    port = group.report_writer()
    port.append(heartbeat(1, 1), 10)
    first = group.reader().read_to_end()[0].timestamp_ms
    numbers = itertools.count(2)

    def newest_ms() -> int:
        port.append(heartbeat(1, next(numbers)), 10)
        return group.reader().read_to_end()[-1].timestamp_ms

    last = wait_until(lambda: (ms := newest_ms()) > first + 300 and ms, 20, "time passes")
    read = group.reader().read_to_end()
    assert min(each.timestamp_ms for each in read) >= last - 300
    assert read[-1].message == heartbeat(1, next(numbers) - 1)
