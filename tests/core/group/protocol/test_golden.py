"""Records as kgs 0.1 writes them, to the byte: groups are upgraded while they run, and topics keep old records."""

import json
from contextlib import suppress

import pytest

from kgs_core.errors import ProtocolError
from kgs_core.group.protocol.codec import decode, encode
from tests.core.group.protocol.golden import GOLDEN, records

RECORDS = records()
MAY_BE_MISSING = {
    "target": {"measurement_offset", "pinned", "history", "lake_root", "suspect_after_s", "config_hashes"},
    "report": {
        *("stopped", "positions", "kgs_version", "config_hash", "last_drain_s", "max_drain_s", "drains", "bad_shares"),
        *("ready", "unready", "ending", "why"),
    },
    **{name: set() for name in ("assignment", "heartbeat", "starting", "state", "version")},
}


def test_every_message_has_its_record():
    assert RECORDS.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_a_message_is_written_to_the_byte_as_ever_and_read_as_it_was(name):
    assert encode(GOLDEN[name]) == RECORDS[name]
    assert decode(*RECORDS[name]) == GOLDEN[name]


@pytest.mark.parametrize("name", MAY_BE_MISSING)
def test_only_what_earlier_versions_left_out_may_be_missing(name):
    """A set that is missing is not an empty one: who took it for that would give partitions up."""
    key, value = RECORDS[next(found for found in GOLDEN if found.split(":")[0] == name)]
    record = json.loads(value)
    missing = {field for field in record if is_read(key, {each: record[each] for each in record if each != field})}
    assert missing == MAY_BE_MISSING[name]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("known", [[1, "ab"]]),
        ("known", [{"consumer": 1}]),
        ("lake_root", 5),
        ("config_hashes", None),
        ("speeds_bytes_per_s", {"t": {"1": float("nan")}}),
        ("history", [{"time_ms": 1}]),
    ],
)
def test_a_target_with_a_bad_part_is_refused_by_its_name(field, value):
    key, record = target_record()
    with pytest.raises(ProtocolError, match=f"not a message: {field}"):
        decode(key, json.dumps(record | {field: value}).encode())


@pytest.mark.parametrize("field", ["lake_root", "suspect_after_s"])
def test_terms_that_are_given_in_part_are_none(field):
    key, record = target_record()
    assert decode(key, json.dumps(record | {field: None}).encode()).terms is None
    with pytest.raises(ProtocolError, match="not a message: config_hashes"):
        decode(key, json.dumps(record | {field: None, "config_hashes": 5}).encode())


def test_parts_may_have_fields_of_a_later_version():
    key, record = target_record()
    later = {name: [part | {"later": 1} for part in record[name]] for name in ("known", "history")}
    assert decode(key, json.dumps(record | later | {"member": 1, "terms": 2}).encode()) == GOLDEN["target"]


def target_record():
    key, value = RECORDS["target"]
    return key, json.loads(value)


def is_read(key, record):
    with suppress(ProtocolError):
        return decode(key, json.dumps(record).encode()) is not None
    return False
