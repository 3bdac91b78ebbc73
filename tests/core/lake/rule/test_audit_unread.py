"""Offsets that are still to be read, and those that Kafka has deleted before."""

import pytest

from kgs_core.lake.rule import NO_OFFSETS, LogPart, TableAudit, check_partition
from tests.core.lake.rule.test_audit import LOG_GONE, offsets, stored

UNREAD = "deleted from Kafka's log before they were read"


@pytest.mark.parametrize(
    ("place", "log", "unread", "said"),
    [
        (stored(0, 10), LogPart(start=0, end=25), 15, []),
        (stored(0, 10), LogPart(start=10, end=10), 0, []),
        (stored(0, 10), LogPart(start=30, end=42), 32, [f"deleted unread 20: 10-29 ({UNREAD})"]),
        (stored(0, 10, gaps=((4, 10),)), LogPart(start=10, end=10), 0, []),
        (stored(None, None), LogPart(start=3, end=7), 7, [f"deleted unread 3: 0-2 ({UNREAD})"]),
        (stored(0, 10), LOG_GONE, None, []),
    ],
)  # fmt: skip
def test_what_is_not_read_is_counted_and_what_was_deleted_before_is_a_fault(place, log, unread, said):
    rows = range((place.position or 0) if not place.gaps else 4)
    found = check_partition(place, offsets(*rows), NO_OFFSETS, log, "one_to_one")
    assert (found.unread, [str(each) for each in found.findings], found.ok) == (unread, said, not said)
    assert TableAudit("t", "t", "one_to_one", 1, (found,)).unread == unread
