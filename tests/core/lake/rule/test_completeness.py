"""How far a table is complete, against a plain loop over all records that ever come."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.completeness import PartitionEdge, completeness
from kgs_core.model import TopicPartition

LATENESS_MS = 5_000
ASKED_MS = 100_000


@dataclass(frozen=True)
class Log:
    """One partition: (append time, timestamp) of each record, in the order of offsets, and what is known of it.

    Markers of transactions have offsets and no timestamp.
    """

    records: list[tuple[int, int | None]]
    position: int | None
    first: int

    @property
    def end(self) -> int:
        return sum(appended <= ASKED_MS for appended, _ in self.records)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """A log that is appended to before and after the question; producers' clocks are not ahead."""
    times = sorted(draw(st.lists(st.integers(LATENESS_MS, 2 * ASKED_MS), max_size=12)))
    records = [(at, draw(st.one_of(st.none(), st.integers(at - LATENESS_MS, at)))) for at in times]
    there = sum(at <= ASKED_MS for at in times)
    first = draw(st.integers(0, there))
    position = draw(st.one_of(st.none(), st.integers(0, there)))
    return Log(records, position, first)


def edge(number: int, log: Log) -> PartitionEdge:
    at = log.first if log.position is None else max(log.position, log.first)
    unread = [stamp for _, stamp in log.records[at : log.end] if stamp is not None]
    empty_to = None if unread else log.end
    return PartitionEdge(
        TopicPartition("t", number), log.position, log.first, log.end, unread[0] if unread else None, empty_to
    )


@given(st.lists(logs(), max_size=4))
def test_no_record_before_the_time_is_unread_then_or_later(every: list[Log]) -> None:
    edges = [edge(n, log) for n, log in enumerate(every)]
    found = completeness("t", edges, ASKED_MS, LATENESS_MS / 1000)
    lost = any(log.position is not None and log.position < log.first and log.end > log.position for log in every)
    assert (found.until_ms is None) == lost
    if found.until_ms is None:
        return
    unread = [
        stamp
        for log in every
        for _, stamp in log.records[max(log.first if log.position is None else log.position, 0) :]
        if stamp is not None
    ]
    assert all(stamp >= found.until_ms for stamp in unread)
    # No later than need be: either all was read when it was asked, or the first unread record says so
    nearest = [stamp for log in every for stamp in [e.unread_ms for e in [edge(0, log)]] if stamp is not None]
    assert found.until_ms == min([ASKED_MS, *nearest]) - LATENESS_MS


@given(logs(), st.sampled_from(["end", "first", "unread_ms"]))
def test_unknown_is_never_complete(log: Log, missing: str) -> None:
    known = edge(0, log)
    parts = {name: getattr(known, name) for name in ("position", "first", "end", "unread_ms")} | {missing: None}
    found = completeness("t", [PartitionEdge(known.partition, **parts)], ASKED_MS, 0.0)
    needs = missing == "end" or (not known.is_read) or known.position is None
    if missing == "unread_ms":
        needs = not known.is_read
    if missing == "first":  # markers alone behind a position say nothing of what was deleted
        needs = needs or known.position != known.end
    if needs:
        assert found.until_ms is None
        assert found.problem


@pytest.mark.parametrize("stamp", [ASKED_MS + 60_001, 4_070_908_800_000, -62_135_596_800_000, 2**63 - 1])
def test_a_record_with_an_impossible_time_says_nothing_of_those_behind_it(stamp: int) -> None:
    found = completeness("t", [PartitionEdge(TopicPartition("t", 0), 1, 0, 9, stamp)], ASKED_MS, 60.0)
    assert (found.until, found.held_by) == (None, TopicPartition("t", 0))
    assert str(stamp) in found.problem


def test_a_log_that_ends_before_the_position_is_not_read() -> None:
    found = completeness("t", [PartitionEdge(TopicPartition("t", 0), 9, 0, 8)], ASKED_MS, 0.0)
    assert found.until is None
    assert "ends at 8, before the position 9" in found.problem
