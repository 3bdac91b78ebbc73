"""The audit's rule: a right table is clean, and every way to be wrong is named."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule import NO_OFFSETS, Fault, LakeAudit, LogPart, StoredPositions, TableAudit, check_partition
from kgs_core.lake.rule.positions import offset_sum
from kgs_core.model import OffsetRange, TopicId

LOG_GONE = LogPart()


def offsets(*given):
    return np.array(given, np.int64)


def log_of(*records, first=0, end=None):
    end = max(records, default=first - 1) + 1 if end is None else end
    return LogPart(OffsetRange(first, end), offsets(*records), end)


def stored(start=0, position=10, gaps=(), dead_letters_position=None, redriven=()):
    spans = tuple(OffsetRange(*g) for g in gaps)
    done = len(redriven), offset_sum(redriven)
    return StoredPositions(TopicId("id"), 0, start, position, spans, dead_letters_position, done)


def findings(place, rows, dead_letters=(), log=LOG_GONE, promise="one_to_one"):
    found = check_partition(place, offsets(*rows), offsets(*dead_letters), log, promise)
    assert found.ok == (not found.findings)
    assert (found.rows, found.dead_letters) == (len(rows), len(dead_letters))
    return [str(finding) for finding in found.findings]


ALL = log_of(*range(10))
NAMED = [
    # what is there, and what is said of it
    (stored(), range(10), (), ALL, []),
    (stored(0, 0), (), (), log_of(*range(10)), []),
    (stored(), (0, 1, 2, 5, 6, 7, 9), (), ALL, ["lost 3: 3-4, 8 (in the log)"]),
    (stored(), (0, 1, 2, 5, 6, 7, 8, 9), (), LOG_GONE, ["lost 2: 3-4 (log no longer there)"]),
    (stored(), range(5, 10), (), LOG_GONE, ["lost 5: 0-4 (log no longer there)"]),
    (stored(), (), (), LogPart(absent="log not read"), ["lost 10: 0-9 (log not read)"]),
    (stored(), (*range(10), 4, 4, 5), (), ALL, ["doubled 3: 4-5 (rows)"]),
    (stored(), (*range(10), 12, 11, 15), (), ALL, ["ahead 3: 11-12, 15 (rows at or above the position 10)"]),
    (stored(0, 12), range(10), (), ALL, ["ahead 2: 10-11 (the log ends at 10)"]),
    (stored(4), (3, *range(4, 10)), (), ALL, ["foreign 1: 3 (rows below the start)"]),
    (stored(), (0, 1, 2, 4, 5, 6, 7, 8, 9), (), log_of(0, 1, 2, 4, 5, 6, 7, 8, 9), []),
    (stored(), range(10), (), log_of(*range(3), *range(4, 10)), ["foreign 1: 3 (rows where the log has no record)"]),
    (stored(gaps=[(2, 5)]), (0, 1, 5, 6, 7, 8, 9), (), ALL, []),
    (stored(gaps=[(2, 5)]), (0, 1, 5, 6, 7, 8, 9), (), LOG_GONE, []),
    (stored(gaps=[(2, 5)]), (0, 1, 3, 5, 6, 7, 8, 9), (), ALL, ["foreign 1: 3 (rows inside an accepted gap)"]),
    (stored(dead_letters_position=5), (*range(4), *range(5, 10)), (4,), ALL, []),
    (stored(dead_letters_position=5), range(10), (4,), ALL, ["doubled 1: 4 (row and dead letter of one record)"]),
    (stored(dead_letters_position=5), (*range(4), *range(5, 10)), (4, 4), ALL, ["doubled 1: 4 (dead letters)"]),
    (stored(dead_letters_position=9, redriven=(4, 7)), range(10), (4, 7), ALL, []),
    # Dead letters are committed first: who is killed then leaves them above the position, and drops them on replay
    (stored(0, 5, dead_letters_position=10), range(5), (7, 9), ALL, []),
    # And what lay behind was deleted before it was read again, and that was accepted
    (stored(0, 10, gaps=[(5, 10)], dead_letters_position=10), range(5), (7,), log_of(first=10), []),
    (stored(dead_letters_position=9, redriven=(4,)), (0, 1, 2, 3, 4, 5, 6, 8, 9), (4, 7), LOG_GONE, []),
    (
        stored(dead_letters_position=9, redriven=(4,)),
        range(10),
        (4, 7),
        ALL,
        ["doubled 1: 4, 7 (row and dead letter of one record, 1 of them redriven)"],
    ),
    (
        stored(dead_letters_position=9, redriven=(4, 7)),
        (*range(4), 5, 6, 7, 8, 9),
        (4, 7),
        ALL,
        ["lost: rows of 2 redriven dead letters, 1 are left"],
    ),
    (
        stored(dead_letters_position=9, redriven=(4,)),
        (*range(4), 5, 6, 7, 8, 9),
        (4, 7),
        ALL,
        ["contradiction: not the 1 dead letters that were redriven are rows"],
    ),
    (
        stored(dead_letters_position=5),
        (*range(4), *range(5, 10)),
        (4, 6),
        ALL,
        ["ahead 1: 6 (dead letters at or above their table's position 5)"],
    ),
    (stored(20, 10), (), (), LOG_GONE, ["contradiction: position 10 lies below the start 20"]),
    (
        stored(gaps=[(8, 12)]),
        range(8),
        (),
        LOG_GONE,
        ["contradiction: accepted gap 8 to 12 is not within start 0 and position 10"],
    ),
    (
        stored(None, None),
        (3,),
        (),
        LOG_GONE,
        ["foreign 1: 3 (rows of a partition or topic id that the table has no position of)"],
    ),
    (stored(None, 5), (), (), LOG_GONE, ["contradiction: position without start"]),
]


@pytest.mark.parametrize(("place", "rows", "dead_letters", "log", "said"), NAMED)
def test_what_is_wrong_is_reported_with_its_offsets(place, rows, dead_letters, log, said):
    assert findings(place, tuple(rows), dead_letters, log) == said


def test_part_of_the_log_that_is_left_explains_that_part_only():
    log = log_of(*range(6, 10, 2), first=6, end=10)  # odd ones are markers of transactions
    assert findings(stored(), (0, 1, 3, 4, 5, 6), log=log) == [
        "lost 1: 8 (in the log)",
        "lost 1: 2 (log no longer there)",
    ]


def test_filter_may_drop_and_any_may_multiply():
    assert findings(stored(), (1, 4), promise="filter") == []
    assert findings(stored(), (1, 4, 4), promise="filter") == ["doubled 1: 4 (rows)"]
    assert findings(stored(), (1, 4, 4), promise="any") == []
    assert findings(stored(), (4, 4, 10), promise="any") == ["ahead 1: 10 (rows at or above the position 10)"]
    assert findings(stored(dead_letters_position=9), (4, 4), (4,), promise="any") == [
        "doubled 1: 4 (row and dead letter of one record)"
    ]


def test_at_most_a_handful_of_ranges_is_named():
    assert findings(stored(0, 100), range(0, 100, 2), log=log_of(*range(100))) == [
        "lost 50: 1, 3, 5, 7, 9, 45 more ranges (in the log)"
    ]
    assert findings(stored(0, 100), range(1, 100, 2)) == [
        "lost 50: 0, 2, 4, 6, 8, 45 more ranges (log no longer there)"
    ]


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


def test_totals_are_sums_and_one_wrong_partition_is_enough():
    right = check_partition(stored(), np.arange(10), NO_OFFSETS, ALL, "one_to_one")
    wrong = check_partition(stored(0, 3), offsets(0, 0, 5, 6), offsets(1), ALL, "one_to_one")
    table = TableAudit("t", "t", "one_to_one", 1, (right, wrong))
    assert (table.rows, table.dead_letters) == (14, 1)
    assert [table.count(fault) for fault in Fault] == [2, 1, 3, 0, 0, 0, 0, 0]
    clean = TableAudit("u", "u", "one_to_one", 1, (right,))
    assert (right.ok, wrong.ok, table.ok, clean.ok) == (True, False, False, True)
    assert (LakeAudit((clean, table)).ok, LakeAudit((clean,)).ok, LakeAudit(()).ok) == (False, True, True)


@dataclass(frozen=True)
class Sink:
    """A partition as a sink that works leaves it.

    `log` is what Kafka still has; `records` what it ever had up to its end.
    """

    place: StoredPositions
    rows: tuple[int, ...]
    dead_letters: tuple[int, ...]
    log: LogPart
    records: frozenset[int] = field(repr=False)

    @property
    def span(self):
        return range(self.place.start, self.place.position)

    def in_gap(self, offset):
        return any(gap.start <= offset < gap.end for gap in self.place.gaps)

    def findings(self):
        return check_partition(
            self.place, offsets(*self.rows), offsets(*self.dead_letters), self.log, "one_to_one"
        ).findings

    def faults(self):
        return {finding.fault: finding.count for finding in self.findings()}


@st.composite
def sinks(draw, *, every_kind=False, at_end=False):
    """With `every_kind` the offsets from the start on are a row, a dead letter, a marker and a gap."""
    end = draw(st.integers(12 if every_kind else 1, 30))
    start = draw(st.integers(1, 6) if every_kind else st.integers(0, end - 1))
    position = end if at_end else draw(st.integers(start + 4 if every_kind else start, end))
    first = draw(st.integers(0, start + 2 if every_kind else end))
    # What the log no longer has was whole: a marker that is gone with the log cannot be told from a loss.
    markers = draw(st.sets(st.integers(first, end)))
    bad = draw(st.sets(st.integers(start, end)))
    cuts = sorted(draw(st.sets(st.integers(start + 4 if every_kind else start, position), max_size=4)))
    gaps = list(zip(cuts[::2], cuts[1::2], strict=False))
    if every_kind:
        markers = (markers | {start + 2}) - {start, start + 1}
        bad = (bad | {start + 1}) - {start}
        gaps.append((start + 3, start + 4))
    records = frozenset(range(end)) - markers
    wanted = [o for o in sorted(records) if start <= o < position and not any(a <= o < b for a, b in gaps)]
    dead_letters = sorted(o for o in bad & records if o >= position or o in wanted)
    mark = draw(st.integers(dead_letters[-1] + 1, end)) if dead_letters else None
    covered = OffsetRange(max(start, first), max(start, first, position))
    seen = offsets(*(o for o in sorted(records) if covered.start <= o < covered.end))
    rows = reversed([o for o in wanted if o not in bad])
    place = stored(start, position, gaps, mark)
    return Sink(place, tuple(rows), tuple(dead_letters), LogPart(covered, seen, end), records)


def lost_row(sink, draw):
    gone = draw(st.sampled_from(sink.rows))
    return replace(sink, rows=tuple(o for o in sink.rows if o != gone)), {Fault.LOST: 1}


def lost_dead_letter(sink, draw):
    gone = draw(st.sampled_from([o for o in sink.dead_letters if o in sink.span]))
    return replace(sink, dead_letters=tuple(o for o in sink.dead_letters if o != gone)), {Fault.LOST: 1}


def doubled_row(sink, draw):
    twice = draw(st.lists(st.sampled_from(sink.rows), min_size=1, max_size=5))
    return replace(sink, rows=(*sink.rows, *twice)), {Fault.DOUBLED: len(twice)}


def row_of_a_dead_letter(sink, draw):
    both = draw(st.sampled_from([o for o in sink.dead_letters if o in sink.span]))
    return replace(sink, rows=(*sink.rows, both)), {Fault.DOUBLED: 1}


def row_without_position(sink, draw):
    ahead = [sink.place.position + d for d in draw(st.sets(st.integers(0, 20), min_size=1, max_size=5))]
    return replace(sink, rows=(*sink.rows, *ahead)), {Fault.AHEAD: len(ahead)}


def row_of_nothing(sink, draw):
    """Below the start, where the log has no record, or in a gap."""
    in_log = range(sink.log.covered.start, sink.log.covered.end)
    nothing = [*range(sink.place.start), *{*in_log} - sink.records, *filter(sink.in_gap, sink.span)]
    return replace(sink, rows=(*sink.rows, draw(st.sampled_from(nothing)))), {Fault.FOREIGN: 1}


@pytest.mark.parametrize(
    "fault", [lost_row, lost_dead_letter, doubled_row, row_of_a_dead_letter, row_without_position, row_of_nothing]
)
@given(sink=sinks(every_kind=True), data=st.data())
def test_each_way_to_be_wrong_is_named_and_nothing_else_is(fault, sink, data):
    broken, wanted = fault(sink, data.draw)
    assert sink.findings() == ()
    assert broken.faults() == wanted


@given(sinks(every_kind=True, at_end=True), st.integers(1, 9))
def test_position_above_the_end_of_the_log_is_named(sink, distance):
    place = replace(sink.place, position=sink.log.end + distance)
    assert replace(sink, place=place).faults() == {Fault.AHEAD: distance}
