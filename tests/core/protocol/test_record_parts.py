"""A message in several records: all of them or none, whatever a crash, compaction or somebody else has left."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.errors import ProtocolError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Incarnation, Member, MemberAssignment, Target, Tombstone
from kgs_core.protocol.codec import MAX_BYTES, encode
from kgs_core.protocol.record_parts import (
    MAX_PARTS,
    PartsReader,
    leftover_keys,
    note_parts,
    part_key,
    records_of,
)
from tests.core.protocol.test_codec import LIMITS, messages, targets

MEMBER = Member(ConsumerId(3), Incarnation("12"))  # digits: its key must not look like that of a part
CUT = 97


def cut(message, characters=CUT):
    """A message in records of very little text each."""
    value = encode(message)[1]
    enough = max(characters, -(-len(value or b"") // MAX_PARTS))
    return records_of(message, 60, enough)


def read(*records, most_held=10**9):
    """What comes out, record by record, and how many were dropped."""
    dropped = []
    reader = PartsReader(dropped.append, most_held=most_held)
    found = []
    for record in records:
        try:
            found.append(reader.take(*record))
        except ProtocolError as e:
            dropped.append(e)
            found.append(None)
    return found, len(dropped)


def out(*records):
    return [message for message in read(*records)[0] if message is not None]


def gives(*numbers):
    return MemberAssignment(MEMBER, frozenset(TopicPartition("t", number) for number in numbers))


LARGE, OTHER = gives(*range(200)), gives(*range(100, 260))


@LIMITS
@given(messages, st.integers(5, 200))
def test_what_was_written_in_parts_is_read_with_the_last_one(message, characters):
    records = cut(message, characters)
    found, dropped = read(*records)
    assert found == [None] * (len(records) - 1) + [message]
    assert dropped == 0
    assert len({key for key, _ in records}) == len(records), "compaction keeps one record of a key"
    assert records[0][0] == encode(message)[0], "compaction removes what the message was before"


@LIMITS
@given(messages)
def test_what_fits_is_one_record_as_ever(message):
    assert records_of(message) == [encode(message)]


def test_killed_between_any_two_parts_nothing_is_seen_of_it_and_the_next_message_is():
    records = cut(LARGE)
    assert len(records) > 5
    for killed_after in range(1, len(records)):
        assert read(*records[:killed_after]) == ([None] * killed_after, 0)
        found, dropped = read(*records[:killed_after], *cut(OTHER))
        assert ([m for m in found if m is not None], dropped) == ([OTHER], 1), killed_after
        found, dropped = read(*records[:killed_after], encode(OTHER))
        assert ([m for m in found if m is not None], dropped) == ([OTHER], 1), killed_after


def test_a_missing_part_is_no_message_and_is_counted():
    records = cut(LARGE)
    for missing in range(len(records)):
        found, dropped = read(*records[:missing], *records[missing + 1 :])
        assert not any(found)
        assert dropped >= 1 or missing == len(records) - 1
        assert out(*records[:missing], *records[missing + 1 :], *records) == [LARGE]


def test_a_part_of_another_message_is_not_taken_for_one_of_this():
    ours, theirs = cut(LARGE), cut(OTHER)
    for place in range(1, min(len(ours), len(theirs))):
        assert out(*ours[:place], theirs[place], *ours[place + 1 :]) == []
        assert out(*ours[:place], *theirs[place:]) == []
    assert out(ours[0], ours[1], *theirs, *ours[2:]) == [OTHER]


def test_two_writers_at_once_the_later_one_is_read():
    """A consumer's client that was given up may still send what it had, between the parts of the next."""
    older, newer = cut(LARGE)[:3], cut(OTHER)
    assert out(older[0], newer[0], older[1], newer[1], older[2], *newer[2:]) == [OTHER]


def test_a_doubled_message_is_read_twice_and_a_doubled_part_not_at_all():
    records = cut(LARGE)
    assert out(*records, *records) == [LARGE, LARGE]
    assert out(*records, records[-1]) == [LARGE]
    assert out(records[0], *records) == [LARGE]
    assert out(records[0], records[1], *records[1:]) == []


def with_text(record, change):
    part = json.loads(record[1])
    return record[0], json.dumps(part | {"text": change(part["text"])}, separators=(",", ":")).encode()


def test_parts_whose_text_is_not_what_was_hashed_are_no_message():
    first, *others = cut(LARGE)
    assert out(with_text(first, lambda text: text), *others) == [LARGE]
    other = [with_text(record, lambda text: text.replace(",112,", ",113,")) for record in (first, *others)]
    assert other != [first, *others], "still JSON of an Assignment, and another one"
    found, dropped = read(*other)
    assert not any(found)
    assert dropped == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": 0}, "number"),
        ({"number": 3}, "does not fit"),
        ({"parts": 0}, "parts"),
        ({"parts": MAX_PARTS + 1}, "parts"),
        ({"id": "x"}, "id"),
        ({"text": ""}, "text"),
        ({"text": 5}, "text"),
        ({"number": "2"}, "number"),
    ],
)
def test_a_part_that_is_none_is_refused_by_what_is_wrong(change, said):
    key, value = cut(LARGE)[1]
    changed = json.dumps(json.loads(value) | change, separators=(",", ":")).encode()
    with pytest.raises(ProtocolError, match=said):
        PartsReader(print).take(key, changed)


def test_a_part_under_another_key_is_refused():
    first, second, *_ = cut(LARGE)
    for key, value in [(second[0], first[1]), (first[0], second[1]), (b"target", second[1])]:
        with pytest.raises(ProtocolError, match="does not fit"):
            PartsReader(print).take(key, value)
    stranger = [(key.replace(b"3/12", b"4/12"), value) for key, value in cut(LARGE)]
    assert out(*stranger) == [], "whose Assignment it is, the key says, too"


def test_an_earlier_kgs_refuses_a_part_by_its_version():
    for _, value in cut(LARGE):
        assert json.loads(value)["version"] == 2


def test_a_record_that_is_too_large_and_a_message_of_too_many_parts_are_refused():
    key, value = cut(LARGE)[0]
    with pytest.raises(ProtocolError, match="more than"):
        PartsReader(print).take(key, value + b" " * MAX_BYTES)
    with pytest.raises(ProtocolError, match=r"MemberAssignment: \d+ bytes are too many: use fewer partitions"):
        records_of(LARGE, 60, 2)


def test_what_is_held_of_messages_that_never_end_is_bounded_and_the_oldest_goes_first():
    halves = [cut(dataclasses.replace(LARGE, member=Member(ConsumerId(n), Incarnation("x")))) for n in range(1, 30)]
    begun = [half[0] for half in halves]
    assert read(*begun, most_held=3 * CUT)[1] == 26
    found, dropped = read(*begun, *halves[-1][1:2], *halves[-2][1:], most_held=20 * CUT)
    assert dropped >= 9
    assert found[-1] is not None


numbers = st.frozensets(st.integers(0, 10**6), max_size=60)


@LIMITS
@given(st.lists(numbers, min_size=1, max_size=5), st.data())
def test_compaction_never_takes_the_newest_message_nor_brings_an_older_one_back(writes, data):
    """Any record may have gone that has a later one of its key, and left-over parts are removed or not."""
    log, counts = [], {}
    for owned in writes:
        records = cut(gives(*owned), 40)
        if data.draw(st.booleans()):
            log += [(key, None) for key in leftover_keys(records[0][0], len(records), counts.get(records[0][0], 1))]
        note_parts(counts, records[0][0], len(records))
        log += records
    keys = [key for key, _ in log]
    kept = [r for at, r in enumerate(log) if r[0] not in keys[at + 1 :] or data.draw(st.booleans())]
    found = out(*kept)
    assert found[-1] == gives(*writes[-1])
    order = iter([gives(*owned) for owned in writes])
    assert all(message in order for message in found), "a subsequence of what was written"


@LIMITS
@given(st.lists(numbers, min_size=1, max_size=3), st.data())
def test_whatever_is_lost_doubled_or_mixed_only_whole_messages_come_out(writes, data):
    log = [record for owned in writes for record in cut(gives(*owned), 30)]
    picked = data.draw(st.lists(st.sampled_from(log), max_size=30))
    assert {gives(*owned) for owned in writes} >= set(out(*picked))


def test_after_the_last_word_of_a_member_nothing_is_left_of_its_parts():
    records, counts = cut(LARGE), {}
    for n in range(1, len(records) + 1):
        note_parts(counts, records[0][0], n)
    removed = [
        encode(Tombstone(MEMBER)),
        *((key, None) for key in leftover_keys(records[0][0], 1, counts[records[0][0]])),
    ]
    assert {key for key, _ in removed} == {key for key, _ in records}
    assert out(*records, *removed) == [LARGE, Tombstone(MEMBER)]
    assert part_key(b"3/12", 1) == b"3/12"


@LIMITS
@given(targets)
def test_counts_say_how_many_parts_have_been_seen(target):
    records = cut(target)
    reader = PartsReader(print, counts := {})
    for record in records:
        reader.take(*record)
    assert counts == ({b"target": len(records)} if len(records) > 1 else {})


def test_a_target_of_three_hundred_thousand_partitions_is_read_as_it_was_written():
    tps = {TopicPartition(f"events.of.service-{n // 10:05d}", n % 10): ConsumerId(1 + n % 1000) for n in range(300_000)}
    speeds = {tp: 123_456.789 + n for n, tp in enumerate(tps)}
    target = Target("search", tps, (), speeds, 1e6, 0.0, "", (), (), 1)
    records = records_of(target)
    assert len(records) > 1
    assert max(len(value) for _, value in records) < MAX_BYTES
    assert out(*records) == [target]
