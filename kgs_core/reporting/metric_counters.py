"""Counters and histograms over what the group's topics say, from the moment on at which the counting began. Pure."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TypeVar

from kgs_core.group.protocol import (
    Change,
    Ending,
    Incarnation,
    Member,
    Message,
    Phase,
    Received,
    Report,
    Target,
    WorkDone,
)
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.metrics import METRICS
from kgs_core.planning.rebalance_budget import MAX_HISTORY
from kgs_core.planning.triggers import Reason
from kgs_core.reporting.metric_samples import Sample

T = TypeVar("T")
Series = tuple[str, tuple[str, ...]]
"""Metric and the values of its labels."""
OTHER = "other"
_FORCED = ("false", "true")
_NO_CHANGE = Change(0, "", 0, 0.0, 0)
_MOST_REMEMBERED = 20_000
_OF_WORK = ("kgs_commits_total", "kgs_commit_seconds_total", "kgs_consumer_cpu_seconds_total")


class Histogram:
    """Counts of values by upper bounds, and their sum."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self._bounds = METRICS[metric].buckets
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """One more value; a bound counts as below."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound -> how many are not above it, as OpenMetrics has them; the last is `+Inf`."""
        names = [*(str(bound) for bound in self._bounds), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))


class GroupCounters:
    """Counts what happens in the group. What had happened before the first `take` is known, and not counted.

    So an exporter that starts anew begins at zero, as Prometheus expects of one, and no change is counted twice.
    """

    def __init__(self) -> None:
        self.reaction = Histogram("kgs_change_reaction_seconds")
        self._times = {name: Histogram(f"kgs_change_{name.removesuffix('_s')}_seconds") for name, _ in _NO_CHANGE.times}
        self.unread = Histogram("kgs_partition_unread_seconds")
        # All are there from the first look on: of a series that begins with 1, nobody sees that it rose
        self._totals: defaultdict[Series, float] = defaultdict(float, dict.fromkeys(_series(), 0.0))
        self._work: dict[Incarnation, tuple[int, WorkDone]] = {}
        self._changes: dict[tuple[int, str], bool] = {}
        self._ended: dict[Incarnation, None] = {}
        self._have_read: dict[Incarnation, None] = {}
        self._gaps = Unread()
        self._target_offset = -1
        self._is_counting = False
        self._is_new_connection = False

    def connected(self) -> None:
        """The next `take` begins at the topics' start once more."""
        self._is_new_connection = True

    def take(self, messages: Iterable[Received[Message]]) -> None:
        """More of what the topics say, in their order; the first time, all that they held at the start."""
        received = list(messages)
        offsets = [one.offset for one in received if isinstance(one.message, Target)]
        if self._is_new_connection and offsets and max(offsets) < self._target_offset:
            self._target_offset = -1  # the topic was deleted and made again
        self._is_new_connection = False
        for one in received:
            match one.message:
                case Target(history=history) if one.offset > self._target_offset:
                    self._target_offset = one.offset  # after a new connection old ones are read again
                    for change in history[-MAX_HISTORY:]:  # what stands before has been summed up
                        self._take_change(change)
                case Report() as report:
                    self._take_report(report)
                case _:
                    pass
        self._gaps.take(received)
        for gap_s in self._gaps.gaps_s.values():
            if self._is_counting:
                self.unread.add(gap_s)
        self._gaps.forget_gaps()
        self._is_counting = True

    def samples(self) -> Iterator[Sample]:
        """All counters."""
        for (name, labels), total in sorted(self._totals.items()):
            yield Sample(name, labels, total)

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """All histograms."""
        return (self.reaction, *self._times.values(), self.unread)

    def _take_change(self, change: Change) -> None:
        key = (change.time_ms, change.reason)
        forced = str(is_forced(change.reason)).lower()
        if key not in self._changes:
            self._changes[key] = False
            if len(self._changes) > 2 * MAX_HISTORY:
                del self._changes[next(iter(self._changes))]  # by when it was seen: clocks go back
            if self._is_counting:
                self._totals["kgs_changes_total", (reason_label(change.reason), forced)] += 1
                self._totals["kgs_moved_partitions_total", (forced,)] += change.moved
                self._totals["kgs_rscore_total", (forced,)] += change.rscore
        if change.duration_s is not None and not self._changes[key]:
            self._changes[key] = True
            if self._is_counting:
                self.reaction.add(change.duration_s)
                self._take_times(change)

    def _take_times(self, change: Change) -> None:
        if change.seen_s is None:
            return
        for name, value in change.times:
            if value is not None:
                self._times[name].add(value)

    def _take_report(self, report: Report) -> None:
        incarnation = report.member.incarnation
        if report.work is not None:
            self._take_work(report.member, report.sequence, report.work)
        if report.phase is Phase.READING:
            _remember(self._have_read, incarnation, None)
        if report.phase is not Phase.ENDED or incarnation in self._ended:
            return
        _remember(self._ended, incarnation, None)
        if self._is_counting:
            self._totals["kgs_consumers_ended_total", (str(report.ending or OTHER),)] += 1
            if report.ending is Ending.FAILED and incarnation not in self._have_read:
                self._totals["kgs_consumer_start_failures_total", ()] += 1

    def _take_work(self, member: Member, sequence: int, work: WorkDone) -> None:
        """Add what is more than at the last report; one that is older, read again, adds nothing."""
        at, before = self._work.pop(member.incarnation, (-1, WorkDone()))
        is_older = sequence <= at
        _remember(self._work, member.incarnation, (at, before) if is_older else (sequence, work))
        if is_older or not self._is_counting:
            return
        label = (str(member.consumer),)
        more = {
            ("kgs_commits_total", ()): work.commits - before.commits,
            ("kgs_commit_seconds_total", ()): work.commit_s - before.commit_s,
            **_refused(work, before),
            ("kgs_consumer_cpu_seconds_total", ()): (work.cpu_s or 0.0) - (before.cpu_s or 0.0),
            ("kgs_consumer_full_bytes_total", label): work.full_bytes - before.full_bytes,
            ("kgs_consumer_full_seconds_total", label): work.full_s - before.full_s,
            **_across_zones(work, before, *label),
        }
        for series, value in more.items():
            self._totals[series] += max(0.0, value)


def _refused(work: WorkDone, before: WorkDone) -> dict[Series, int]:
    """Batches that did not land since the last report, by reason; a version that says none of it has `OTHER` alone."""
    refused = work.refused - before.refused
    if work.outrun is None:
        return {("kgs_commits_refused_total", (OTHER,)): refused}
    ahead = work.outrun - (before.outrun or 0)
    return {
        ("kgs_commits_refused_total", ("ahead",)): ahead,
        ("kgs_commits_refused_total", ("error",)): refused - ahead,
    }


def _across_zones(work: WorkDone, before: WorkDone, consumer: str) -> dict[Series, int]:
    """Bytes since the last report, by whether they crossed a zone's border; nothing where that is not known."""
    if work.same_zone_bytes is None or work.cross_zone_bytes is None:
        return {}
    name = "kgs_consumer_zone_bytes_total"
    return {
        (name, (consumer, "same")): work.same_zone_bytes - (before.same_zone_bytes or 0),
        (name, (consumer, "across")): work.cross_zone_bytes - (before.cross_zone_bytes or 0),
    }


def _series() -> Iterator[Series]:
    """Every series that is counted."""
    for reason in (*(each.name.lower() for each in Reason), OTHER):
        yield from (("kgs_changes_total", (reason, forced)) for forced in _FORCED)
    for forced in _FORCED:
        yield from ((name, (forced,)) for name in ("kgs_moved_partitions_total", "kgs_rscore_total"))
    yield from (("kgs_consumers_ended_total", (str(ending),)) for ending in (*Ending, OTHER))
    yield from (("kgs_commits_refused_total", (reason,)) for reason in ("ahead", "error", OTHER))
    yield from ((name, ()) for name in ("kgs_consumer_start_failures_total", *_OF_WORK))


def _remember(known: dict[Incarnation, T], incarnation: Incarnation, what: T) -> None:
    """Keeps the last thousands: an exporter lives for a year."""
    known[incarnation] = what
    if len(known) > _MOST_REMEMBERED:
        del known[next(iter(known))]


def reason_label(reason: str) -> str:
    """The first reason of a change in one word of a fixed set: `overloaded`, `lost`, ...; `other`."""
    found = [each for each in Reason if reason.startswith(each.value)]
    return found[0].name.lower() if found else OTHER


def is_forced(reason: str) -> bool:
    """Whether a change was made for more than a better packing."""
    return any(not part.startswith(Reason.TIMEOUT) for part in reason.split("; "))
