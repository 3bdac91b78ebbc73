"""The group's mailboxes on a real broker: what is written is read, all of it or nothing, and by the newest alone."""

import dataclasses
import itertools
import random
import threading
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kgs_core.adapters.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.adapters.group.operator_topic import OperatorTopicWriter
from kgs_core.adapters.group.reader import GroupReader, Read
from kgs_core.adapters.group.topics import GroupTopic
from kgs_core.errors import ConfigError, FencedError, PermanentError, TransientError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Order, Target, Tombstone
from kgs_core.protocol.codec import encode
from tests.system.mailboxes import (
    WANTED,
    WISH,
    A,
    B,
    C,
    Group,
    group_on,
    heartbeat,
    member,
    order,
    orders_in,
    report,
    said,
    target,
)
from tests.waiting import wait_until


@pytest.fixture
def group(kafka: EmbeddedKafka, topic_prefix: str) -> Iterator[Group]:
    with group_on(kafka.bootstrap_servers, topic_prefix) as group:
        yield group


def test_what_everybody_writes_is_what_the_inbox_reads(group: Group) -> None:
    with_tombstone = [order(1, A, B), order(2, C), order(3)]
    outbox, box, pen = group.outbox(), group.report_box(), OperatorTopicWriter(group.topics)
    written = outbox.write(target("first", member(1)), with_tombstone, [Tombstone(member(3, "gone"))])
    wishes = [pen.write(WISH), pen.write(WANTED)]
    box.send(report(1, 1, A, B), 10)
    box.send(heartbeat(1, 2), 10)
    assert said(written) == [target("first", member(1)), *with_tombstone, Tombstone(member(3, "gone"))]
    assert [each.offset for each in written] == [0, 0, 0, 0, 1]
    assert written[0].timestamp_ms > 1_700_000_000_000
    read = group.inbox().read_to_end()
    reports = [each for each in read if each not in [*written, *wishes]]
    assert [each for each in read if each in written and not isinstance(each.message, Target)] == written[1:]
    assert written[0] in read
    assert [each for each in read if each in wishes] == wishes == pen.read()
    assert said(reports) == [report(1, 1, A, B), heartbeat(1, 2)]
    assert len(read) == len(written) + 4
    pen.close()


def test_poll_goes_on_where_the_end_was_and_a_second_reading_begins_anew(group: Group) -> None:
    outbox, box, inbox = group.outbox(), group.report_box(), group.inbox()
    with pytest.raises(TransientError, match="not read to their ends yet"):
        inbox.poll(0)
    outbox.write(None, [order(1, A)], [])
    assert said(inbox.read_to_end()) == [order(1, A)]
    assert inbox.poll(0) == []
    outbox.write(None, [order(1, A, B)], [])
    for sequence in range(1, 4):
        box.send(heartbeat(1, sequence), 10)
    found = []
    wait_until(lambda: found.extend(inbox.poll(1)) or len(found) == 4, 20, "all four")
    assert orders_in(found) == [order(1, A, B)]
    assert [m.sequence for m in said(found) if m == heartbeat(1, getattr(m, "sequence", 0))] == [1, 2, 3]
    assert orders_in(inbox.read_to_end()) == [order(1, A), order(1, A, B)]
    assert inbox.poll(0) == []


def test_the_end_of_empty_topics(group: Group) -> None:
    inbox = group.inbox()
    assert inbox.read_to_end() == []
    assert inbox.poll(0.1) == []
    group.outbox().write(target(), [], [])
    assert said(wait_until(lambda: inbox.poll(1), 20, "the Target")) == [target()]


def test_a_write_of_nothing_needs_no_pen(group: Group) -> None:
    assert group.outbox(fenced=False).write(None, [], []) == []
    with pytest.raises(TransientError, match="no pen: fence"):
        group.outbox(fenced=False).write(target(), [], [])


def test_an_aborted_transaction_at_the_end_holds_up_nobody(group: Group) -> None:
    group.outbox().write(target(), [order(1, A)], [])
    with group.transaction(order(1, B), order(2, C)) as other:
        other.abort_transaction(20)
    inbox = group.inbox(timeout_s=20)
    assert {*map(repr, said(inbox.read_to_end()))} == {*map(repr, [target(), order(1, A)])}
    with group.transaction(order(2, C)) as other:
        other.abort_transaction(20)
    assert inbox.poll(0.5) == []


def test_an_open_transaction_is_waited_for(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order behind it would be missed, and with it what a consumer may own.

    The second reader has asked for the ends before the transaction is over: which ends it asks for is what counts.
    """
    looked = threading.Event()
    take_up_to = GroupReader.take_up_to

    def tell(reader: GroupReader, ends: Mapping[TopicPartition, int], timeout_s: float) -> list[Read]:
        looked.set()
        return take_up_to(reader, ends, timeout_s)

    outbox = group.outbox()
    read = []
    with group.transaction(order(1, A)) as other:
        outbox.write(None, [order(1, B)], [])
        with pytest.raises(TransientError, match=r"metadata:1 after 1 s: .*transaction that is still open"):
            group.inbox(timeout_s=1).read_to_end()
        inbox = group.inbox(timeout_s=30)
        reading = threading.Thread(target=lambda: read.extend(inbox.read_to_end()))
        monkeypatch.setattr(GroupReader, "take_up_to", tell)
        reading.start()
        assert looked.wait(20)
        assert read == []
        other.commit_transaction(20)
        reading.join(30)
    assert orders_in(read) == [order(1, A), order(1, B)]


def test_of_two_controllers_the_older_one_is_at_its_end(group: Group) -> None:
    older, inbox = group.outbox(), group.inbox()
    older.write(target("older"), [order(1, A)], [])
    newer = group.outbox()
    with pytest.raises(FencedError, match=f"^controller of group {group.settings.group}: a newer controller has taken"):
        older.write(target("too late"), [order(1, B), order(2, B)], [Tombstone(member(1))])
    with pytest.raises(FencedError):
        older.write(target("too late"), [order(1, B)], [])
    with pytest.raises(FencedError):
        older.fence()
    assert said(inbox.read_to_end()) == [target("older"), order(1, A)]
    newer.write(target("newer"), [order(1)], [])
    found = said(group.inbox().read_to_end())
    assert [m for m in found if isinstance(m, Target)] == [target("older"), target("newer")]
    assert orders_in(group.inbox().read_to_end()) == [order(1, A), order(1)]


def test_records_that_are_no_message_are_counted_and_said_once(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    good = encode(order(1, A))
    bad_version = (good[0], (good[1] or b"").replace(b'"version":1', b'"version":99'))
    group.produce(GroupTopic.ORDERS, 1, bad_version, bad_version, (good[0], b"\xff"), (b"k", b"{}"), (b"?", None), good)
    inbox = group.inbox()
    assert said(inbox.read_to_end()) == [order(1, A)]
    assert inbox.refused == 5
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(lines) == len(set(lines)) < 5
    group.produce(GroupTopic.ORDERS, 1, bad_version)
    group.outbox().write(None, [order(1)], [])
    assert said(wait_until(lambda: inbox.poll(1), 20, "the order behind")) == [order(1)]
    assert inbox.refused == 6


def test_what_a_role_may_not_write_it_cannot_say_in_its_own_topic(group: Group) -> None:
    """A consumer has the right to write reports: nothing that it puts there can pass for an order."""
    group.produce(GroupTopic.REPORTS, 0, encode(order(1, A)), encode(target()), encode(WISH), encode(report(1, 1)))
    group.produce(GroupTopic.WISHES, 0, encode(target()), encode(report(1, 1)), encode(WANTED))
    group.produce(GroupTopic.ORDERS, 0, encode(order(1, A)))
    group.produce(GroupTopic.ORDERS, 2, encode(order(1, A)), encode(target()), encode(Tombstone(member(1))))
    inbox = group.inbox()
    assert {*map(repr, said(inbox.read_to_end()))} == {repr(report(1, 1)), repr(WANTED)}
    assert inbox.refused == 9


def test_a_queue_gives_out_what_is_ordered_after_its_opening(group: Group) -> None:
    outbox = group.outbox()
    outbox.write(target(), [order(1, A), order(2, B)], [])
    box = group.order_box(1)
    # Written before the client has fetched anything: the place was fixed by the constructor
    outbox.write(target("second"), [order(1, A, B), order(2)], [Tombstone(member(1, "gone"))])
    outbox.write(None, [order(1, incarnation="later")], [])
    found = []
    wait_until(lambda: found.extend(box.newest(1)) or len(found) == 2, 20, "two orders")
    assert said(found) == [order(1, A, B), order(1, incarnation="later")]
    assert found[0].offset < found[1].offset
    assert box.newest(0) == []
    assert box.refused == 0


def test_what_stands_in_a_transaction_when_the_queue_is_opened_is_not_given_out(group: Group) -> None:
    """It cannot be for this process, which nobody knows yet; it would look like an order to a newer one."""
    with group.transaction(order(1, A, incarnation="earlier")) as other:
        box = group.order_box(1)
        key, value = encode(order(1, B))
        other.produce(group.name(GroupTopic.ORDERS), value, key, 1)
        assert box.newest(0.5) == []
        other.commit_transaction(20)
    assert said(wait_until(lambda: box.newest(1), 20, "the order")) == [order(1, B)]


def test_a_consumer_without_partition_is_refused_with_the_way_out(group: Group) -> None:
    outbox = group.outbox()
    with pytest.raises(PermanentError, match=r"consumer 4: topic \S+ has 4 partitions.* raise membership"):
        outbox.write(target(), [order(1, A), order(4, B)], [])
    assert group.inbox().read_to_end() == []
    outbox.write(None, [order(3)], [])
    for number in (0, 4):
        with pytest.raises(ConfigError, match="consumers 1 to 3"):
            group.order_box(number)


def test_partitions_added_later_are_used(group: Group) -> None:
    outbox, inbox = group.outbox(), group.inbox()
    inbox.read_to_end()
    group.admin.create_partitions(group.name(GroupTopic.ORDERS), 6)
    outbox.write(None, [order(5, A)], [])
    assert said(inbox.read_to_end()) == [order(5, A)]


def test_a_message_that_is_too_large_is_named_and_nothing_of_its_write_stays(
    group: Group, kafka: EmbeddedKafka
) -> None:
    topic = ConfigResource(ConfigResource.Type.TOPIC, group.name(GroupTopic.ORDERS))
    topic.add_incremental_config(ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for answer in admin.incremental_alter_configs([topic]).values():
        answer.result(20)
    outbox = group.outbox()
    draw = random.Random(1)
    many = [TopicPartition(f"topic-{draw.getrandbits(64):x}", n) for n in range(1000)]
    large = Order(member(2), frozenset(many))
    everything = {TopicPartition(f"a-topic-with-a-long-name-{n}", 0): ConsumerId(1) for n in range(200_000)}
    with pytest.raises(PermanentError, match=f"Order of {member(2)}.*max.message.bytes"):
        outbox.write(target(), [order(1, A), large], [])
    with pytest.raises(PermanentError, match=r"write Target of 200000 partitions: .* bytes are more than"):
        outbox.write(dataclasses.replace(target(), assignment=everything), [order(1, A)], [])
    assert group.inbox().read_to_end() == []
    outbox.write(None, [order(1, B)], [])
    assert said(group.inbox().read_to_end()) == [order(1, B)]


def test_reports_that_retention_took_are_passed_over(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    box, inbox = group.report_box(), group.inbox()
    inbox.read_to_end()
    tp = TopicPartition(group.name(GroupTopic.REPORTS), 0)
    for sequence in range(1, 6):
        box.send(heartbeat(1, sequence), 10)
    group.admin.delete_records({tp: 3})
    found = []
    wait_until(lambda: found.extend(inbox.poll(1)) or (found and found[-1].message == heartbeat(1, 5)), 30, "the last")
    sequences = [each.message.sequence for each in found]  # type: ignore[union-attr]
    # The client may have fetched the first ones before they went
    assert sequences in ([4, 5], [1, 2, 3, 4, 5])
    assert said(group.inbox().read_to_end()) == [heartbeat(1, 4), heartbeat(1, 5)]
    if sequences == [4, 5]:
        assert "offset 0 is gone: read again from 3" in caplog.text


def test_reports_are_read_from_a_little_before_the_newest(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgs_core.adapters.group.inbox.REPORTS_BACK_MS", 300)
    box = group.report_box()
    box.send(heartbeat(1, 1), 10)
    first = group.inbox().read_to_end()[0].timestamp_ms
    numbers = itertools.count(2)

    def newest_ms() -> int:
        box.send(heartbeat(1, next(numbers)), 10)
        return group.inbox().read_to_end()[-1].timestamp_ms

    last = wait_until(lambda: (ms := newest_ms()) > first + 300 and ms, 20, "time passes")
    read = group.inbox().read_to_end()
    assert min(each.timestamp_ms for each in read) >= last - 300
    assert read[-1].message == heartbeat(1, next(numbers) - 1)


@pytest.mark.slow
def test_times_with_three_thousand_partitions_and_thirty_orders(kafka: EmbeddedKafka, topic_prefix: str) -> None:
    """Prints them; how long it takes is the machine's affair."""
    tps = [TopicPartition(f"some.longer.topic.name-{n // 12:03d}", n % 12) for n in range(3000)]
    owners = {tp: ConsumerId(1 + n % 30) for n, tp in enumerate(tps)}
    speeds = {tp: 123_456.789 + n for n, tp in enumerate(tps)}
    big = Target("mwf", owners, (ConsumerId(31),), speeds, 2e6, 0.3, "big", tuple(map(member, range(1, 31))), (), 1)
    orders = [Order(member(n), frozenset(tp for tp, c in owners.items() if c == n)) for n in range(1, 31)]
    with group_on(kafka.bootstrap_servers, topic_prefix, metadata_partitions=64) as group:
        box, outbox, inbox = group.report_box(), group.outbox(fenced=False), group.inbox()
        for n in range(1, 31):
            box.send(report(n, 1, *orders[n - 1].owned), 10)
        for number in range(3):
            times = [time.perf_counter()]
            for act in (outbox.fence, lambda: outbox.write(big, orders, []), inbox.read_to_end):
                found = act()
                times.append(time.perf_counter())
            fence, write, read = (round((b - a) * 1000) for a, b in itertools.pairwise(times))
            assert len(found) == 31 * (number + 1) + 30
            print(f"fence {fence} ms, write {write} ms, read to the end {read} ms, Target {len(encode(big)[1])} bytes")
