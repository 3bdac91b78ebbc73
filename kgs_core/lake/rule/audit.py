"""Compares the rows of a table with its start, position and gaps (invariant S3)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kgs_core.lake.rule.audit_result import (
    Fault,
    Finding,
    LogPart,
    Offsets,
    PartitionAudit,
    Promise,
    SideRows,
    StoredPositions,
)
from kgs_core.lake.rule.positions import offset_sum
from kgs_core.model import OffsetRange

MAX_RANGES = 5
_Mask = npt.NDArray[np.bool_]
_Test = Callable[[Offsets], _Mask]


def check_partition(
    stored: StoredPositions,
    rows: Offsets,
    dead_letters: Offsets,
    log: LogPart,
    promise: Promise,
    sides: Sequence[SideRows] = (),
) -> PartitionAudit:
    """Compare the rows of a partition with what its start, position and gaps promise.

    Each row counts in one fault at most.

    Args:
        rows: offset of every row, in any order; `dead_letters` likewise of every dead letter.
        promise: what the table's transform promises. `one_to_one`: every record is one row or one dead letter.
            `filter`: at most one. `any`: several rows of one offset are right, and so is none.
        sides: the rows of side tables: a record's row may be in any of them.
    """
    rows, dead_letters = np.sort(rows), np.sort(dead_letters)
    every = np.concatenate([rows, dead_letters, *(side.offsets for side in sides)])
    if stored.start is None or stored.position is None:
        findings = _without_start(stored, np.sort(np.concatenate([rows, *(s.offsets for s in sides)])), dead_letters)
    else:
        span = OffsetRange(stored.start, stored.position)
        findings = [*_contradictions(stored.gaps, span)]
        rows_here, wrong = _place_rows(rows, span, stored.gaps, log)
        dead_letters_here, wrong_dead_letters = _place_dead_letters(dead_letters, span, stored, log)
        for side in sides:
            rows_there, wrong_there = _place_side_rows(side, span, log)
            rows_here, wrong = np.sort(np.concatenate([rows_here, rows_there])), [*wrong, *wrong_there]
        findings += [
            *wrong,
            *wrong_dead_letters,
            *_doubled(rows_here, dead_letters_here, promise),
            *_redriven(np.intersect1d(rows_here, dead_letters_here), stored.redriven),
            *_truncated(span, log),
        ]
        if promise == "one_to_one":
            accounted = np.union1d(np.union1d(rows_here, dead_letters_here), stored.ended.all)
            findings += _lost(accounted, span, stored.gaps, log)
    position = stored.position or 0  # without one: 0, where a partition begins that appeared after the first start
    findings += _deleted_unread(position, log)
    findings += _found(Fault.STILL_THERE, np.intersect1d(stored.ended.by_person, every), "ended by kgs erase")
    unread = None if log.end is None else max(0, log.end - position)
    in_all = len(rows) + sum(len(side.offsets) for side in sides)
    gone, erased = (len(np.setdiff1d(offsets, every)) for offsets in (stored.ended.all, stored.ended.by_person))
    return PartitionAudit(stored, in_all, len(dead_letters), tuple(findings), unread, gone - erased, erased)


def changed(offsets: Offsets) -> list[Finding]:
    """Finding of rows whose values are not those that their records give, ascending; nothing where there are none."""
    return _found(Fault.CHANGED, offsets, "not what the rule makes of the record")


def _without_start(stored: StoredPositions, rows: Offsets, dead_letters: Offsets) -> list[Finding]:
    if stored.start is not None or stored.position is not None or stored.gaps:
        what = "start without position" if stored.position is None else "position without start"
        contradiction = [Finding(Fault.CONTRADICTION, 1, (), what)]
    else:
        contradiction = []
    return [
        *contradiction,
        *_found(Fault.FOREIGN, rows, "rows of a partition or topic id that the table has no position of"),
        *_found(
            Fault.FOREIGN, dead_letters, "dead letters of a partition or topic id that the table has no position of"
        ),
    ]


def _contradictions(gaps: Sequence[OffsetRange], span: OffsetRange) -> Iterator[Finding]:
    if span.end < span.start:
        yield Finding(Fault.CONTRADICTION, 1, (), f"position {span.end} lies below the start {span.start}")
    for gap in gaps:
        if not span.start <= gap.start < gap.end <= span.end:
            note = f"accepted gap {gap.start} to {gap.end} is not within start {span.start} and position {span.end}"
            yield Finding(Fault.CONTRADICTION, 1, (), note)


def _place_rows(
    rows: Offsets, span: OffsetRange, gaps: Sequence[OffsetRange], log: LogPart
) -> tuple[Offsets, list[Finding]]:
    return _sorted_out(
        rows,
        (Fault.FOREIGN, "rows below the start", lambda o: o < span.start),
        (Fault.AHEAD, f"rows at or above the position {span.end}", lambda o: o >= span.end),
        (Fault.FOREIGN, "rows inside an accepted gap", lambda o: within_any(o, gaps)),
        (Fault.FOREIGN, "rows where the log has no record", lambda o: _not_in_log(o, log)),
    )


def _place_dead_letters(
    dead_letters: Offsets, span: OffsetRange, stored: StoredPositions, log: LogPart
) -> tuple[Offsets, list[Finding]]:
    """Dead letters at or above the table's position, or in a gap accepted there, are right.

    They are committed before the rows: whoever is killed in between leaves them, and what lies behind them may be
    deleted before it is read again.
    """
    mark = stored.dead_letters_position or 0
    return _sorted_out(
        dead_letters,
        (Fault.FOREIGN, "dead letters below the start", lambda o: o < span.start),
        (Fault.AHEAD, f"dead letters at or above their table's position {mark}", lambda o: o >= mark),
        (Fault.FOREIGN, "dead letters where the log has no record", lambda o: _not_in_log(o, log)),
    )


def _place_side_rows(side: SideRows, span: OffsetRange, log: LogPart) -> tuple[Offsets, list[Finding]]:
    """As dead letters: they are committed before the rows of the own table, and may lie ahead of its position.

    Redriven ones lie below that, and may lie above their table's.
    """
    mark, table = max(side.position or 0, span.end), side.table
    return _sorted_out(
        np.sort(side.offsets),
        (Fault.FOREIGN, f"rows of {table} below the start", lambda o: o < span.start),
        (Fault.AHEAD, f"rows of {table} at or above its position {mark}", lambda o: o >= mark),
        (Fault.FOREIGN, f"rows of {table} where the log has no record", lambda o: _not_in_log(o, log)),
    )


def _sorted_out(offsets: Offsets, *tests: tuple[Fault, str, _Test]) -> tuple[Offsets, list[Finding]]:
    """What passes all tests, and a finding for each test with what fails it and passed those before."""
    findings: list[Finding] = []
    for fault, note, fails in tests:
        wrong = fails(offsets)
        findings += _found(fault, offsets[wrong], note)
        offsets = offsets[~wrong]
    return offsets, findings


def _doubled(rows: Offsets, dead_letters: Offsets, promise: Promise) -> Iterator[Finding]:
    if promise != "any":
        yield from _found(Fault.DOUBLED, _repeats(rows), "rows")
    yield from _found(Fault.DOUBLED, _repeats(dead_letters), "dead letters")


def _redriven(both: Offsets, redriven: tuple[int, int]) -> Iterator[Finding]:
    """Records that are row and dead letter must be those that were redriven; which they are, their sum tells."""
    count, total = redriven
    note = "row and dead letter of one record" + (f", {count} of them redriven" if count else "")
    if len(both) < count:
        yield Finding(Fault.LOST, count - len(both), (), f"rows of {count} redriven dead letters, {len(both)} are left")
    elif len(both) > count:
        yield replace(_found(Fault.DOUBLED, both, note)[0], count=len(both) - count)
    elif offset_sum(both.tolist()) != total:
        yield Finding(Fault.CONTRADICTION, 1, (), f"not the {count} dead letters that were redriven are rows")


def _truncated(span: OffsetRange, log: LogPart) -> Iterator[Finding]:
    if log.end is not None and span.end > log.end:
        yield _ranges_found(Fault.AHEAD, [OffsetRange(log.end, span.end)], f"the log ends at {log.end}")


def _deleted_unread(position: int, log: LogPart) -> Iterator[Finding]:
    if log.start is not None and log.start > position:
        gone = OffsetRange(position, log.start)
        yield _ranges_found(Fault.DELETED_UNREAD, [gone], "deleted from Kafka's log before they were read")


def _lost(present: Offsets, span: OffsetRange, gaps: Sequence[OffsetRange], log: LogPart) -> Iterator[Finding]:
    end = span.end if log.end is None else min(span.end, log.end)  # above the log's end: see _truncated
    span = OffsetRange(span.start, max(span.start, end))
    records = log.records[_within(log.records, span) & ~within_any(log.records, gaps)]
    yield from _found(Fault.LOST, np.setdiff1d(records, present, assume_unique=True), "in the log")
    holes = [hole for part in _without(span, [*gaps, log.covered]) for hole in _holes(present, part)]
    if holes:
        yield _ranges_found(Fault.LOST, holes, log.absent)


def _within(offsets: Offsets, span: OffsetRange) -> _Mask:
    return (offsets >= span.start) & (offsets < span.end)


def within_any(offsets: Offsets, ranges: Iterable[OffsetRange]) -> _Mask:
    """Which of the offsets lie in one of the ranges."""
    mask = np.zeros(len(offsets), np.bool_)
    for span in ranges:
        mask |= _within(offsets, span)
    return mask


def _not_in_log(offsets: Offsets, log: LogPart) -> _Mask:
    unknown: _Mask = _within(offsets, log.covered) & ~np.isin(offsets, log.records)
    return unknown


def _repeats(ascending: Offsets) -> Offsets:
    again: Offsets = ascending[1:][ascending[1:] == ascending[:-1]]
    return again


def _without(span: OffsetRange, cuts: Iterable[OffsetRange]) -> list[OffsetRange]:
    """`span` without what the cuts cover, ascending."""
    left, at = [], span.start
    for cut in sorted(cuts):
        if cut.start > at:
            left.append(OffsetRange(at, min(cut.start, span.end)))
        at = max(at, cut.end)
        if at >= span.end:
            return [r for r in left if r.end > r.start]
    return [*left, OffsetRange(at, span.end)]


def _holes(present: Offsets, span: OffsetRange) -> list[OffsetRange]:
    """The parts of `span` that `present` (ascending, each once) leaves out."""
    inside = present[np.searchsorted(present, span.start) : np.searchsorted(present, span.end)]
    edges = np.concatenate(([span.start - 1], inside, [span.end]))
    before = np.flatnonzero(np.diff(edges) > 1)
    return [OffsetRange(int(edges[i]) + 1, int(edges[i + 1])) for i in before]


def _found(fault: Fault, offsets: Offsets, note: str) -> list[Finding]:
    """A finding of these offsets, which ascend; nothing where there are none."""
    if not len(offsets):
        return []
    last = np.flatnonzero(np.diff(offsets) > 1)
    starts, ends = [0, *(last + 1)], [*last, len(offsets) - 1]
    ranges = [
        OffsetRange(int(offsets[a]), int(offsets[b]) + 1) for a, b in zip(starts[:MAX_RANGES], ends, strict=False)
    ]
    return [Finding(fault, len(offsets), tuple(ranges), note, len(starts) - len(ranges))]


def _ranges_found(fault: Fault, ranges: Sequence[OffsetRange], note: str) -> Finding:
    count = sum(r.end - r.start for r in ranges)
    return Finding(fault, count, tuple(ranges[:MAX_RANGES]), note, max(0, len(ranges) - MAX_RANGES))
