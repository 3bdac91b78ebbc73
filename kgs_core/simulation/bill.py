"""Bill of a group: what it has used in a range of time, beside what other ways to share out partitions would have."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kgs_core.group.view.handover_gaps import Handover
from kgs_core.monitor.speeds.recorded import RecordedMeasurement
from kgs_core.reporting.plain_values import plain
from kgs_core.reporting.usage import GroupUsage, Period, overlap_s
from kgs_core.simulation.at_p99 import LoadCost

VERSION = 1
_rounded = partial(plain, digits=6)
_HOUR_S = 3600.0
_NEXT_TO_EACH_OTHER = 1.5
"""Intervals between two measurements from which on there is a gap between them."""


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a consumer for an hour; None: not known.

    Attributes:
        per_consumer_hour: of the first class, where there are classes.
        currency: for people.
        by_class: of each class; empty: there are none.
    """

    per_consumer_hour: float | None = None
    currency: str = ""
    by_class: Mapping[str, float] = field(default_factory=dict)

    def of(self, consumer_hours: float | None) -> float | None:
        """What so many hours cost; None: not known."""
        if self.per_consumer_hour is None or consumer_hours is None:
            return None
        return self.per_consumer_hour * consumer_hours

    def of_class(self, name: str) -> float | None:
        """Of a consumer of this class; of one without a class, that of the first."""
        return self.by_class.get(name, self.per_consumer_hour)


@dataclass(frozen=True, slots=True)
class Recording:
    """Load that was recorded in a range of time.

    Attributes:
        measurements: in order of time, each with a speed at least; each stands for `interval_s`.
        periods: of the range, those that the measurements stand for.
    """

    measurements: Sequence[RecordedMeasurement]
    interval_s: float
    periods: tuple[Period, ...]

    def speed_at(self, handover: Handover) -> float | None:
        """Speed of the partition when it changed hands, bytes/s; None: not known."""
        taken_s = handover.taken_ms / 1000
        place = bisect_right(self.measurements, taken_s, key=lambda measurement: measurement.time) - 1
        if place < 0 or taken_s - self.measurements[place].time > _NEXT_TO_EACH_OTHER * self.interval_s:
            return None
        return self.measurements[place].speeds.get(handover.partition)


@dataclass(frozen=True, slots=True)
class Moves:
    """Partitions that changed hands, and what that cost.

    Attributes:
        moved: how often a partition changed its consumer; `restarted`: or only the process of its consumer.
        unread_s: time for which these partitions had no reader, added up.
        speed_unknown: of how many of them the speed is not known; what follows is without these.
        rscore: write speed of those that changed their consumer, in C.
        unread_bytes: written while there was no reader.
        unread_byte_s: these times how long they lay unread: the area under the backlog.
        iterations: of a consumer, to read them: one is what a consumer of capacity C reads in a second.
    """

    moved: int = 0
    restarted: int = 0
    unread_s: float = 0.0
    speed_unknown: int = 0
    rscore: float = 0.0
    unread_bytes: float = 0.0
    unread_byte_s: float = 0.0
    iterations: float = 0.0


@dataclass(frozen=True, slots=True)
class Bill:
    """Bill of a range of time.

    Attributes:
        group: name of the group, or of the file that the load is from.
        period: that was asked for, as far as it is over.
        capacity: C, bytes/s.
        p99_s: latency that the costs are compared at; None: there is no load to compare by.
        compared_s: for how long both the load and the consumers are known: the comparison is about this time.
        usage: of the group; None: there is none, the load is from a file.
        costs: the group's own algorithm by the model, then the others.
        recording: of the time that is compared.
        notes: what is not known, and why; a line each.
    """

    group: str
    period: Period
    is_over: bool
    capacity: float
    price: Price
    p99_s: float | None = None
    compared_s: float = 0.0
    usage: GroupUsage | None = None
    moves: Moves | None = None
    costs: tuple[LoadCost, ...] = ()
    recording: Recording | None = None
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> Period:
        """The part of the period of which it is known who ran; empty where that is of none."""
        since = self.usage.known_since_ms if self.usage else None
        start = self.period.until_ms if since is None else since
        return self.period.within(Period(start, self.period.until_ms))

    @property
    def used_hours(self) -> float | None:
        """Consumer-hours that were used, as far as known; None: nothing is."""
        if self.usage is None or self.known.length_s <= 0:
            return None
        return overlap_s(self.usage.lives, [self.known]) / _HOUR_S

    def used_by_class(self, periods: Sequence[Period]) -> dict[str, float]:
        """Class -> consumer-hours that were used in some periods; empty where there are no classes."""
        if self.usage is None or not self.price.by_class:
            return {}
        return {name: overlap_s(lives, periods) / _HOUR_S for name, lives in self.usage.by_class.items()}

    def used_cost(self, hours: float | None, periods: Sequence[Period]) -> float | None:
        """What so many consumer-hours cost, that were used in these periods."""
        costs = [(self.price.of_class(name) or 0.0) * spent for name, spent in self.used_by_class(periods).items()]
        return sum(costs) if costs and hours is not None else self.price.of(hours)

    @property
    def silent_hours(self) -> float:
        """Consumer-hours of processes that were not heard of: whether they were used is not known."""
        return overlap_s(self.usage.silences, [self.known]) / _HOUR_S if self.usage else 0.0

    @property
    def used_hours_compared(self) -> float | None:
        """Consumer-hours that were used in the time that is compared."""
        if self.usage is None or self.recording is None:
            return None
        return overlap_s(self.usage.lives, self.recording.periods) / _HOUR_S

    @property
    def least_hours(self) -> float | None:
        """Consumer-hours that the load takes at least."""
        return self.costs[0].summary.least_consumer_hours if self.costs else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; null where something is not known.

        Returns:
            {"version", "group", "since", "until" (ISO, UTC), "is_over", "capacity_bytes_per_s",
            "price_per_consumer_hour", "currency", "known_s", "used_consumer_hours", "silent_consumer_hours",
            "used_cost", "p99_s", "compared_s", "compared": [{"name", "setting", "is_met", "consumer_hours", "cost",
            "p99_s", "mean_consumers", "moved", "rscore", "late_bytes"}], "moves": {see `Moves`} or null, "notes"}; with
            classes of consumers also "used_by_class": {class: {"consumer_hours", "cost"}}
        """
        price = self.price
        by_class = {
            name: {"consumer_hours": _rounded(spent), "cost": _rounded((price.of_class(name) or 0.0) * spent)}
            for name, spent in self.used_by_class([self.known]).items()
        }
        return {
            "version": VERSION,
            "group": self.group,
            "since": moment(self.period.since_ms),
            "until": moment(self.period.until_ms),
            "is_over": self.is_over,
            "capacity_bytes_per_s": self.capacity,
            "price_per_consumer_hour": price.per_consumer_hour,
            "currency": price.currency,
            "known_s": self.known.length_s,
            "used_consumer_hours": _rounded(self.used_hours),
            "silent_consumer_hours": _rounded(self.silent_hours) if self.usage else None,
            "used_cost": _rounded(self.used_cost(self.used_hours, [self.known])),
            **({"used_by_class": by_class} if by_class else {}),
            "p99_s": _rounded(self.p99_s),
            "compared_s": _rounded(self.compared_s),
            "compared": self._compared(),
            "moves": {n: _rounded(v) for n, v in asdict(self.moves).items()} if self.moves else None,
            "notes": list(self.notes),
        }

    def _compared(self) -> list[dict[str, Any]]:
        if self.recording is None:
            return []
        rows = []
        if self.usage is not None:
            spent = self.used_cost(self.used_hours_compared, self.recording.periods)
            rows.append(self._row("used", "as reported", self.used_hours_compared) | {"cost": _rounded(spent)})
        for cost in self.costs:
            summary = cost.summary
            late = summary.bytes_delayed
            figures = (cost.p99_s, summary.mean_consumers, summary.moved, summary.rscore_total, late)
            rows.append(self._row(cost.name, cost.setting, summary.consumer_hours, figures, is_met=cost.is_met))
        return [*rows, self._row("least", "sum of speeds by C", self.least_hours)]

    def _row(
        self,
        name: str,
        setting: str,
        hours: float | None,
        figures: tuple[float | None, ...] = (None,) * 5,
        *,
        is_met: bool = True,
    ) -> dict[str, Any]:
        names = ("p99_s", "mean_consumers", "moved", "rscore", "late_bytes")
        return {
            "name": name,
            "setting": setting,
            "is_met": is_met,
            "consumer_hours": _rounded(hours),
            "cost": _rounded(self.price.of(hours)),
            **dict(zip(names, map(_rounded, figures), strict=True)),
        }


def recorded_periods(measurements: Sequence[RecordedMeasurement], interval_s: float, within: Period) -> Recording:
    """The load as a bill takes it: measurements inside `within`, and which time they stand for."""
    inside = [m for m in measurements if m.speeds and within.since_ms <= m.time * 1000 < within.until_ms]
    periods: list[Period] = []
    for number, measurement in enumerate(inside):
        begin_s, end_s = measurement.time, measurement.time + interval_s
        if number + 1 < len(inside) and inside[number + 1].time - begin_s <= _NEXT_TO_EACH_OTHER * interval_s:
            end_s = inside[number + 1].time
        here = Period(round(begin_s * 1000), round(end_s * 1000)).within(within)
        if periods and periods[-1].until_ms >= here.since_ms:
            periods[-1] = Period(periods[-1].since_ms, max(here.until_ms, periods[-1].until_ms))
        else:
            periods.append(here)
    return Recording(inside, interval_s, tuple(periods))


def gaps_of(periods: Sequence[Period], within: Period, least_s: float) -> tuple[Period, ...]:
    """Parts of `within` longer than `least_s` that are in none of `periods`, which are in order."""
    found, begin = [], within.since_ms
    for period in (*periods, Period(within.until_ms, within.until_ms)):
        if period.since_ms - begin > least_s * 1000:
            found.append(Period(begin, period.since_ms))
        begin = max(begin, period.until_ms)
    return tuple(found)


def cost_of_moves(handovers: Sequence[Handover], recording: Recording | None, capacity: float) -> Moves:
    """What changed hands, and what that cost by the speeds of the recording."""
    moved = [h for h in handovers if h.before != h.after]
    unknown, rscore, unread, area = 0, 0.0, 0.0, 0.0
    for handover in handovers:
        speed = recording.speed_at(handover) if recording is not None else None
        if speed is None:
            unknown += 1
            continue
        rscore += speed / capacity if handover.before != handover.after else 0.0
        unread += speed * handover.gap_s
        area += speed * handover.gap_s**2 / 2
    return Moves(
        moved=len(moved),
        restarted=len(handovers) - len(moved),
        unread_s=sum(h.gap_s for h in handovers),
        speed_unknown=unknown,
        rscore=rscore,
        unread_bytes=unread,
        unread_byte_s=area,
        iterations=unread / capacity,
    )


def moment(time_ms: int) -> str:
    """`2026-11-24T08:00:00Z`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
