"""Records as kgs 0.1 writes them, to the byte: groups are upgraded while they run, and topics keep old records."""

import json
from contextlib import suppress

import pytest

from kgs_core.errors import ProtocolError
from kgs_core.protocol.codec import decode, encode
from tests.core.protocol.golden import GOLDEN, records

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
def test_a_message_is_written_to_the_byte_as_ever(name):
    assert encode(GOLDEN[name]) == RECORDS[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_is_read_as_the_message_that_it_was(name):
    assert decode(*RECORDS[name]) == GOLDEN[name]


@pytest.mark.parametrize("name", MAY_BE_MISSING)
def test_only_what_earlier_versions_left_out_may_be_missing(name):
    """A set that is missing is not an empty one: who took it for that would give partitions up."""
    key, value = RECORDS[next(found for found in GOLDEN if found.split(":")[0] == name)]
    record = json.loads(value)
    missing = {field for field in record if is_read(key, {each: record[each] for each in record if each != field})}
    assert missing == MAY_BE_MISSING[name]


def is_read(key, record):
    with suppress(ProtocolError):
        return decode(key, json.dumps(record).encode()) is not None
    return False
