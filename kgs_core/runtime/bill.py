"""Bills from what a group's topics still hold, or from a recorded load."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from random import Random
from typing import Any

from kgs_core.config import Settings
from kgs_core.config.classes import price_of
from kgs_core.config.membership import REPORT_RETENTION_H
from kgs_core.config.monitor import RETENTION_H
from kgs_core.errors import ConfigError, PermanentError, PortError
from kgs_core.group.controller.capacity import capacity_seen
from kgs_core.group.topics.report_history import load_usage
from kgs_core.group.view.group_view import GroupView
from kgs_core.lake.topics.kept_bills import KeptBills
from kgs_core.monitor.kafka.recorded_load import load_recorded
from kgs_core.monitor.speeds.recorded import RecordedMeasurement
from kgs_core.reporting.usage import Period
from kgs_core.runtime.group_status import load_group
from kgs_core.simulation.at_p99 import LoadCost, costs_at, own_cost
from kgs_core.simulation.bill import Bill, Price, Recording, cost_of_moves, gaps_of, moment, recorded_periods
from kgs_core.simulation.latency import LatencySettings
from kgs_core.simulation.recorded import recorded_workload
from kgs_core.simulation.replay import Conditions
from kgs_core.system.first_capacity import first_flat_out

DAY_MS = 86_400_000
_GAP_SHOWN_S = 1.0
_MOST_GAPS = 3


@dataclass(frozen=True, slots=True)
class BillTerms:
    """Terms that a bill is made with.

    Attributes:
        capacity: C, bytes/s; `consumer_capacity`: what a consumer reads flat out.
        is_guessed: whether these come from a short measurement of a machine.
        algorithm, consumer_weight: of the group's own packing.
        interval_s: how long a measurement lasts.
        p99_s: latency to compare at; None: that of the group's own algorithm.
    """

    capacity: float
    consumer_capacity: float
    is_guessed: bool = False
    algorithm: str = "search"
    consumer_weight: float | None = None
    price: Price = field(default_factory=Price)
    interval_s: float = 60.0
    p99_s: float | None = None


def terms_of(settings: Settings, *, has_group: bool = True) -> BillTerms:
    """Terms by the configuration; a learnt capacity comes from the newest Target, else it is measured here."""
    packing = settings.packing
    view = GroupView()
    if has_group and packing.learns_capacity:
        with suppress(PortError):  # bills that are kept are shown all the same
            view = load_group(settings)[2]
    seen = capacity_seen(view, packing, {}, (), first_flat_out() if packing.learns_capacity else None)
    packing = seen.packing
    return BillTerms(
        packing.packing_capacity,
        packing.consumer_capacity,
        seen.source == "first",
        packing.algorithm,
        packing.weight,
        _price_of(settings),
    )


def _price_of(settings: Settings) -> Price:
    classes = settings.packing.classes
    if not classes:
        return Price(*price_of(settings.bill.price_per_consumer_hour))
    first = next(iter(classes.values()))
    return Price(first.price, first.currency, {name: one.price for name, one in classes.items()})


def bill_of_group(settings: Settings, asked: Period, now_ms: int, terms: BillTerms) -> Bill:
    """The bill of a range of time that has begun, from the group's reports and the load that was published.

    Raises:
        ConfigError: it has not begun yet, or is empty.
        PortError: Kafka does not answer, or refuses.
    """
    if asked.until_ms <= asked.since_ms:
        raise ConfigError([f"bill: {moment(asked.since_ms)} to {moment(asked.until_ms)}: is an empty period"])
    if asked.since_ms >= now_ms:
        raise ConfigError([f"bill: {moment(asked.since_ms)}: has not begun yet: name a time that has"])
    period = Period(asked.since_ms, min(asked.until_ms, now_ms))
    usage = load_usage(settings, period)
    bill = Bill(settings.group, period, period == asked, terms.capacity, terms.price, usage=usage)
    notes = [f"not over yet: what follows is until {moment(period.until_ms)}"] if not bill.is_over else []
    notes += _usage_notes(bill)
    measured, why = _recorded(settings, period, terms.interval_s)
    compared = bill.known if bill.known.length_s > 0 else period
    recording = recorded_periods(measured, terms.interval_s, compared)
    bill = replace(
        bill, moves=cost_of_moves(usage.handovers, _whole(measured, terms.interval_s, period), terms.capacity)
    )
    if bill.moves and bill.moves.speed_unknown:
        notes.append(
            f"{bill.moves.speed_unknown} of these moves: the speed is not known, so they are not in what follows"
        )
    if not recording.measurements:
        notes.append(why or "no load was recorded while it is known who ran: nothing to compare with")
        return replace(bill, notes=(*notes, *_price_notes(bill)))
    notes += _gap_notes(gaps_of(recording.periods, compared, max(_GAP_SHOWN_S, terms.interval_s)))
    return _compared(replace(bill, notes=tuple(notes)), recording, terms)


def bill_of_load(name: str, measurements: Sequence[RecordedMeasurement], terms: BillTerms) -> Bill:
    """Bill of a recorded load: its cost in a replay; there is no actual use.

    Raises:
        ConfigError: none of them has a speed.
    """
    step_ms = round(terms.interval_s * 1000)
    begin_ms = round(measurements[0].time * 1000)
    evenly = [replace(m, time=(begin_ms + number * step_ms) / 1000) for number, m in enumerate(measurements)]
    period = Period(begin_ms, begin_ms + len(evenly) * step_ms)
    recording = recorded_periods(evenly, terms.interval_s, period)
    if not recording.measurements:
        raise ConfigError([f"{name}: no measurement has the speed of a partition"])
    bill = Bill(name, period, is_over=True, capacity=terms.capacity, price=terms.price)
    left_out = len(evenly) - len(recording.measurements)
    notes = (f"{left_out} measurements without any partition are left out",) if left_out else ()
    return _compared(replace(bill, notes=notes), recording, terms)


def bills_of_days(
    settings: Settings, days: Sequence[date], now_ms: int, terms: BillTerms, *, keep: bool = False
) -> tuple[dict[date, dict[str, Any]], tuple[str, ...]]:
    """Bills of days (UTC) as `Bill.to_dict` gives them: the one that is kept, else from the topics.

    Args:
        days: days that have begun; a day of which nothing is known has no bill.
        keep: whether these are kept, where their day is over.

    Returns:
        The bills, and the problems, a line each. After Kafka has failed once it is not asked again.
    """
    kept = KeptBills(settings)
    found, problems = _kept_days(kept, days)
    for day in [day for day in days if day not in found]:
        try:
            bill = bill_of_group(settings, day_of(day), now_ms, terms)
        except PortError as e:
            problems.append(f"{day} and other days that are not kept: {e}")
            break
        if bill.used_hours is None and bill.recording is None:
            continue
        found[day] = bill.to_dict()
        if keep and bill.is_over:
            try:
                kept.keep(day, found[day])
            except PermanentError as e:  # the bill is shown all the same
                problems.append(str(e))
    return dict(sorted(found.items())), tuple(problems)


def _kept_days(kept: KeptBills, days: Sequence[date]) -> tuple[dict[date, dict[str, Any]], list[str]]:
    found: dict[date, dict[str, Any]] = {}
    problems = []
    for day in days:
        try:
            before = kept.load(day)
        except PermanentError as e:
            problems.append(str(e))
            continue
        if before is not None:
            found[day] = before
    return found, problems


def day_of(day: date) -> Period:
    """A day, UTC."""
    begin_ms = round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return Period(begin_ms, begin_ms + DAY_MS)


def _compared(bill: Bill, recording: Recording, terms: BillTerms) -> Bill:
    load = recorded_workload(bill.group, recording.measurements, terms.capacity)
    latency = LatencySettings(100 * terms.consumer_capacity / terms.capacity, terms.interval_s)
    conditions = Conditions(terms.capacity, latency, record_latency=True)
    own = own_cost(load, conditions, terms.algorithm, terms.consumer_weight, Random)
    p99_s = own.p99_s if terms.p99_s is None else terms.p99_s
    others = tuple(costs_at(p99_s, load, conditions, Random))
    costs = (replace(own, is_met=own.p99_s <= p99_s), *others)
    guessed = f"C is {terms.capacity / 1e6:.3g} MB/s by a short measurement of a machine: --capacity names another"
    guesses = [guessed] if terms.is_guessed else []
    notes = [*bill.notes, *guesses, *_unmet_notes(costs, p99_s), *_price_notes(bill)]
    seconds = len(recording.measurements) * terms.interval_s
    return replace(bill, p99_s=p99_s, compared_s=seconds, costs=costs, recording=recording, notes=tuple(notes))


def _whole(measured: Sequence[RecordedMeasurement], interval_s: float, period: Period) -> Recording:
    return recorded_periods(measured, interval_s, Period(period.since_ms - round(interval_s * 1000), period.until_ms))


def _recorded(settings: Settings, period: Period, interval_s: float) -> tuple[Sequence[RecordedMeasurement], str]:
    try:
        return load_recorded(settings, period.since_ms, period.until_ms, interval_s), ""
    except ConfigError as e:
        return (), f"{e} (measurements are kept for {RETENTION_H} h): nothing to compare with"


def _usage_notes(bill: Bill) -> list[str]:
    kept = f"reports are kept for {REPORT_RETENTION_H} h"
    notes = []
    if bill.known.length_s <= 0:
        notes.append(f"no report of that time is there, {kept}: who ran is not known")
    elif bill.known.since_ms > bill.period.since_ms:
        notes.append(f"the first report is of {moment(bill.known.since_ms)}, {kept}: who ran before is not known")
    if bill.silent_hours > 0:
        notes.append(
            f"up to {bill.silent_hours:.2f} consumer-hours more: processes that were silent for longer than "
            "membership.suspect_after_s, or ended without a word: not known whether they ran"
        )
    if bill.usage and bill.usage.refused:
        notes.append(f"{bill.usage.refused} records of the topic of reports are none and were left out")
    return notes


def _gap_notes(gaps: Sequence[Period]) -> list[str]:
    if not gaps:
        return []
    shown = ", ".join(f"{moment(gap.since_ms)} to {moment(gap.until_ms)}" for gap in gaps[:_MOST_GAPS])
    more = f" and {len(gaps) - _MOST_GAPS} more" if len(gaps) > _MOST_GAPS else ""
    hours = sum(gap.length_s for gap in gaps) / 3600
    return [f"no measurement for {hours:.2f} h, which are not compared: {shown}{more}"]


def _unmet_notes(costs: Sequence[LoadCost], p99_s: float) -> list[str]:
    return [
        f"{cost.name}: no setting that was tried has a p99 of {p99_s:.2f} s; the nearest ({cost.setting}) is shown"
        for cost in costs
        if not cost.is_met
    ]


def _price_notes(bill: Bill) -> list[str]:
    if bill.price.per_consumer_hour is not None:
        return []
    return ["the price of a consumer is unknown: set bill.price_per_consumer_hour, or give --price"]
