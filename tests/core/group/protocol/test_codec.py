"""Messages to records and back; whatever else stands in a topic is refused by its name."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import ProtocolError
from kgs_core.group.protocol import (
    Change,
    ClassOfTarget,
    DesiredState,
    DesiredVersion,
    Heartbeat,
    Idle,
    Incarnation,
    Member,
    MemberAssignment,
    Phase,
    Process,
    Report,
    RunState,
    Target,
    Terms,
    Tombstone,
)
from kgs_core.group.protocol.codec import MAX_BYTES, decode, encode
from kgs_core.group.protocol.fields import MAX_TEXT
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

PART_OF_0_1 = b'{"version":2,"type":"part","id":"' + b"0" * 64 + b'","number":1,"parts":2,"text":"{"}'
consumers = st.integers(1, 10**6).map(ConsumerId)
ids = st.text("0123456789abcdef-", min_size=1, max_size=36)
members = st.builds(Member, consumers, ids.map(Incarnation))
counts = st.integers(0, 2**62)
amounts = st.floats(0, 1e15, allow_nan=False)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
partitions = st.builds(
    TopicPartition, st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), st.integers(0, 2**31 - 1)
)
sets = st.frozensets(partitions, max_size=6)
maybe = st.none() | amounts
changes = st.builds(Change, counts, texts, counts, amounts, counts, maybe)
targets = st.builds(
    Target,
    algorithm=st.sampled_from(["mwf", "nfd"]),
    assignment=st.dictionaries(partitions, consumers, max_size=6),
    spares=st.lists(consumers, max_size=3).map(tuple),
    speeds=st.dictionaries(partitions, amounts, max_size=6),
    capacity=amounts,
    rscore=amounts,
    reason=texts,
    known=st.lists(members, max_size=3).map(tuple),
    quarantined=st.lists(consumers, max_size=2).map(tuple),
    time_ms=counts,
    measurement_offset=st.none() | counts,
    pinned=sets,
    history=st.lists(changes, max_size=3).map(tuple),
    idle=st.none()
    | st.builds(Idle, counts, st.dictionaries(partitions, counts, max_size=3), st.dictionaries(ids, ids, max_size=2)),
    terms=st.none() | st.builds(Terms, texts, amounts, st.lists(texts, max_size=3).map(tuple)),
    classes=st.dictionaries(
        ids, st.builds(ClassOfTarget, st.lists(consumers, max_size=3).map(tuple), amounts), max_size=2
    ),
)
signs = {"member": members, "sequence": counts, "phase": st.sampled_from(Phase), "bytes_per_s": amounts}
reports = st.builds(
    Report,
    **signs,
    batch_age_s=maybe,
    process=st.builds(Process, st.dictionaries(ids, texts | counts, max_size=7)),
    applied=st.none() | counts,
    owned=sets,
    stopped=st.dictionaries(partitions, texts, max_size=3),
    positions=st.dictionaries(partitions, counts, max_size=3),
    version=ids,
    config_hash=ids,
    last_drain_s=maybe,
    max_drain_s=maybe,
    drains=counts,
    bad_shares=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), st.floats(0, 1), max_size=2
    ),
    ready=st.none() | sets,
    unready=st.dictionaries(partitions, texts, max_size=3),
    consumer_class=st.just("") | ids,
)
messages = st.one_of(
    targets,
    reports,
    st.builds(MemberAssignment, members, sets, sets, sets, st.booleans()),
    st.builds(Tombstone, members),
    st.builds(Heartbeat, **signs, batch_age_s=maybe),
    st.builds(DesiredState, st.sampled_from(RunState), texts, counts),
    st.builds(DesiredVersion, ids, ids, texts, counts),
)
DESIRED = DesiredState(RunState.PAUSED, "me", 5)
ORDER = MemberAssignment(Member(ConsumerId(3), Incarnation("ab")), frozenset({TopicPartition("t", 1)}))


@given(messages)
def test_what_was_written_is_read_and_the_same_message_is_the_same_record(message):
    record = encode(message)
    assert decode(*record) == message
    assert encode(decode(*record)) == record


@given(targets | reports)
def test_classes_are_written_only_where_there_are_any(message):
    record = json.loads(encode(message)[1])
    name = "classes" if isinstance(message, Target) else "class"
    assert (name in record) == bool(message.classes if isinstance(message, Target) else message.consumer_class)


@given(messages, st.data())
def test_a_damaged_record_is_read_or_refused(message, data):
    key, value = encode(message)
    at = data.draw(st.integers(0, len(value or b"")))
    damaged = None if value is None else value[:at] + data.draw(st.binary(max_size=4)) + value[at + 1 :]
    with suppress(ProtocolError):
        decode(key, damaged)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def places(value, way=()):
    """The way to every value within a JSON object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for way in [way] if way] + [place for key, found in inner for place in places(found, (*way, key))]


@given(messages.filter(lambda message: not isinstance(message, Tombstone)), anything, st.data())
def test_a_record_with_another_value_in_it_is_read_or_refused(message, other, data):
    key, value = encode(message)
    record = json.loads(value)
    *way, last = data.draw(st.sampled_from(places(record)))
    inner = record
    for step in way:
        inner = inner[step]
    inner[last] = other
    with suppress(ProtocolError):
        encode(decode(key, json.dumps(record).encode()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, "version 2: only 1 is known here"),
        ({"version": "1"}, "version"),
        ({"type": "gossip"}, "gossip"),
        ({"consumer": 4}, "does not fit"),
        ({"consumer": 0}, "consumer"),
        ({"owned": {"t": [-1]}}, "owned"),
        ({"owned": {"": [1]}}, "owned"),
        ({"owned": {"t": "1"}}, "owned"),
        ({"owned": {"t": [True]}}, "owned"),
        ({"retire": 1}, "retire"),
    ],
)
def test_what_is_wrong_is_named(changes, said):
    key, value = encode(ORDER)
    with pytest.raises(ProtocolError, match=said):
        decode(key, json.dumps(json.loads(value or b"") | changes).encode())


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (None, b"{}", "without a key"),
        (b"target", None, "only an Assignment"),
        (b"0/ab", None, "only an Assignment"),
        (b"target", b"{", "not a message"),
        (b"target", b"[" * 100_000, "not a message"),
        (b"target", b'{"version": NaN}', "not a message"),
        (b"target", b" " * (MAX_BYTES + 1), "more than"),
        (b"wanted", encode(DESIRED)[1], "does not fit"),
        (b"target", PART_OF_0_1, "part of a message above 8,000,000 bytes, written by kgs 0.1: not read"),
        (b"target#2", PART_OF_0_1.replace(b'"number":1', b'"number":2'), "written by kgs 0.1"),
        (b"target#2", None, "only an Assignment"),
    ],
)
def test_what_is_no_message_is_refused(key, value, said):
    with pytest.raises(ProtocolError, match=said):
        decode(key, value)


def test_fields_that_are_not_known_here_are_passed_over():
    key, value = encode(ORDER)
    assert decode(key, json.dumps(json.loads(value or b"") | {"later": 1}).encode()) == ORDER


@pytest.mark.parametrize(
    "parts",
    [{"pid": -1}, {"pid": True}, {"pid": None}, {"host": "h" * 256}, {"x" * 101: 1}, {f"p{n}": n for n in range(51)}],
)
def test_parts_of_a_process_have_limits(parts):
    with pytest.raises(ProtocolError, match="process"):
        encode(replace(stopped({}), process=Process(parts)))


def test_texts_for_people_are_cut():
    key, value = encode(DesiredState(RunState.STOPPED, "x" * (2 * MAX_TEXT), 1))
    assert decode(key, value) == DesiredState(RunState.STOPPED, "x" * MAX_TEXT, 1)


def stopped(reasons):
    process = a_process()
    return Report(ORDER.member, 1, Phase.READING, 0.0, None, process, None, frozenset(reasons), reasons)


def test_a_reason_with_half_a_character_is_no_reason_to_be_silent():
    tp = TopicPartition("t", 1)
    assert decode(*encode(stopped({tp: "file \udc80"}))).stopped == {tp: "file ?"}


def test_very_many_reasons_are_cut_so_that_the_report_can_be_sent():
    """A consumer whose reports cannot be sent ends itself, and the next one would, too."""
    reasons = {TopicPartition("t", n): "\0" * MAX_TEXT for n in range(5000)}
    assert decode(*encode(stopped(reasons))).stopped == dict.fromkeys(reasons, "\0" * 200)
    both = decode(*encode(replace(stopped(reasons), unready=reasons)))
    assert both.unready == both.stopped == dict.fromkeys(reasons, "\0" * 100)


@pytest.mark.parametrize(
    "message",
    [
        Heartbeat(ORDER.member, 1, Phase.READING, float("nan"), None),
        MemberAssignment(Member(ConsumerId(0), Incarnation("ab"))),
        MemberAssignment(ORDER.member, frozenset({TopicPartition("t" * 250, 1)})),
    ],
)
def test_what_breaks_a_limit_is_not_written(message):
    with pytest.raises(ProtocolError, match=type(message).__name__):
        encode(message)


OLD_REPORT = b"""{"version": 1, "type": "report", "consumer": 3, "incarnation": "ab", "sequence": 7, "phase": "reading",
"bytes_per_s": 1.5, "batch_age_s": null, "process": {"host": "h", "boot_id": "b", "pid": 1, "start_ticks": 2,
"run_id": ""}, "applied": 4, "owned": {"t": [1]}, "stopped": {}, "positions": {"t": {"1": 9}}, "kgs_version": "0.1.0",
"config_hash": "c", "last_drain_s": null, "max_drain_s": null, "drains": 0}"""


def test_what_an_earlier_version_leaves_out_is_not_known_and_an_ending_of_a_later_one_neither():
    """As 0.1.0 writes it; consumers of two versions are in one group while it is replaced."""
    found = decode(b"3/ab", OLD_REPORT)
    assert (found.positions, found.bad_shares) == ({TopicPartition("t", 1): 9}, {})
    assert (found.ready, found.unready, found.ending, found.why) == (None, {}, None, "")
    later = decode(b"3/ab", json.dumps(json.loads(OLD_REPORT) | {"ending": "eaten", "why": "boom"}).encode())
    assert (later.ending, later.why) == (None, "boom")


@pytest.mark.parametrize("share", [-0.1, 1.1, "all", None])
def test_a_share_that_is_none_is_refused(share):
    record = json.loads(OLD_REPORT) | {"bad_shares": {"t": share}}
    with pytest.raises(ProtocolError, match="bad_shares"):
        decode(b"3/ab", json.dumps(record).encode())
