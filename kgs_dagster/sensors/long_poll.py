"""One tick of the load sensor: looks at the group once a second until there is something to do, or the tick is over.

Nothing lasts from tick to tick but what the topics and Dagster's database hold. So a tick may be lost, and two may run
at once: what one of them asks for is asked for once, by its key.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from kgs_core.errors import KgsError, TransientError
from kgs_core.group.controller.observer import GroupObserver, Recommendation
from kgs_core.group.controller.state import Options
from kgs_core.group.protocol import Message, Received
from kgs_core.group.view.events import Measured
from kgs_core.ports import GroupTopicReader
from kgs_core.reporting.bad_shares import judged_topics
from kgs_core.reporting.group_alerts import Alerts, group_alerts
from kgs_core.reporting.sentences import sentences
from kgs_core.reporting.status import observed_status
from kgs_core.runtime.controller_loop import MeasurementSource, fleet_seen
from kgs_dagster.checks.bad_records import Judged
from kgs_dagster.jobs.rebalance import Hold, RebalanceRuns, rebalance_run_request
from kgs_dagster.launch import DagsterFleet, consumer_run_request
from kgs_dagster.resources import RebalanceConfig
from kgs_dagster.settings import GroupConfig

LENGTH_S = 40.0
"""Dagster gives a tick up after 60 s; what Kafka does not answer may take 15 s longer than this."""
STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class SensorPorts:
    """Ports of a tick.

    Attributes:
        reader: None: the group's topics are not there yet. The first rebalance run makes them.
    """

    measurements: MeasurementSource
    reader: GroupTopicReader | None
    fleet: DagsterFleet
    rebalances: RebalanceRuns


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of a tick.

    Attributes:
        length_s: of a tick in which nothing is to be done.
    """

    steady: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    length_s: float = LENGTH_S


@dataclass(frozen=True, slots=True)
class Found:
    """Findings of a tick."""

    requests: tuple[dg.RunRequest, ...]
    measurement_offset: int | None
    summary: str
    judged: Judged
    alerts: Alerts


class LongPoll:
    """One tick."""

    def __init__(self, group: GroupConfig, options: Options, ports: SensorPorts, timing: Timing) -> None:
        self._group = group
        self._options = options
        self._ports = ports
        self._timing = timing
        self._interval_s = max(STEP_S, group.settings.monitor.interval_s)
        self._sample_due_s = timing.steady()
        self._offset: int | None = None
        self._hold: Hold | None = None
        self._trouble = self._unmeasured = ""

    def run(self) -> Found:
        """Until there are runs to ask for, or the time is over.

        Raises:
            KgsError: the group cannot be looked at.
        """
        timing = self._timing
        end = timing.steady() + timing.length_s
        messages: Sequence[Received[Message]] = self._ports.reader.read_to_end() if self._ports.reader else []
        watch = GroupObserver.begin(self._options, messages, timing.steady(), round(timing.wall() * 1000))
        while True:
            due = timing.steady() + STEP_S
            self._trouble = ""
            try:
                watch, requests = self._step(watch)
            except TransientError as e:
                requests, self._trouble = [], str(e)
            if requests or due > end:
                judged = judged_topics(watch.state.view, watch.state.suspects())
                seen = observed_status(self._group.settings, watch.state, timing.steady())
                alerts = group_alerts(seen, has_listened=self._has_listened(watch))
                return Found(tuple(requests), self._offset, self._summary(watch), judged, alerts)
            timing.sleep(max(0.0, due - timing.steady()))

    def _has_listened(self, watch: GroupObserver) -> bool:
        """Whether for long enough to tell who is silent, which a tick that ends early has not."""
        listened_s = self._timing.steady() - watch.state.listening.silence_counts_from
        return listened_s >= self._options.membership.suspect_after_s

    def _step(self, watch: GroupObserver) -> tuple[GroupObserver, list[dg.RunRequest]]:
        watch = self._heard(watch)
        now = self._timing.steady()
        after, recommended = watch.recommend(now)
        self._hold = self._ports.rebalances.hold(watch.target_offset) if recommended.reason else None
        if self._hold is not None:
            after, recommended = watch.recommend(now, target_stands=self._hold.target_stands)
        for handle in recommended.unwanted:
            self._ports.fleet.stop_unwanted(handle)
        for handle in recommended.overdue:
            self._ports.fleet.stop_overdue(handle)
        return after, [*self._launches(recommended), *self._rebalances(recommended, after, now)]

    def _heard(self, watch: GroupObserver) -> GroupObserver:
        ports, timing = self._ports, self._timing
        if timing.steady() >= self._sample_due_s:
            self._sample_due_s = timing.steady() + self._interval_s - STEP_S / 2
            if (measured := self._measured()) is not None:
                self._offset = measured.measurement_offset
                watch = watch.observed(measured, timing.steady())
        if ports.reader is not None:
            watch = watch.read(ports.reader.poll(0.0), timing.steady())
        return watch.observed(fleet_seen(ports.fleet, watch.state.view), timing.steady())

    def _measured(self) -> Measured | None:
        """Consumers that are missing are started, and assignments given, without a measurement, too."""
        self._unmeasured = ""
        try:
            return self._ports.measurements.newest()
        except KgsError as e:  # one that is refused must not end the look at the group
            self._unmeasured = str(e)
            return None

    def _launches(self, recommended: Recommendation) -> list[dg.RunRequest]:
        fleet = self._ports.fleet
        return [
            consumer_run_request(self._group, each, fleet.next_attempt(each), as_pod=fleet.launches_pods)
            for each in recommended.launch
        ]

    def _rebalances(self, recommended: Recommendation, watch: GroupObserver, now: float) -> list[dg.RunRequest]:
        if not recommended.reason or self._hold is not None:
            return []
        newest, measured = watch.newest_report, watch.state.fresh(now)
        config = RebalanceConfig(
            measurement_offset=measured.offset if measured is not None else None,
            reason=recommended.reason,
            attempt=self._ports.rebalances.next_attempt(),
            applies_plan=False,
            packs=measured is not None,
            report_offset=newest.offset if newest else None,
            report_age_s=round(now - newest.at, 3) if newest else 0.0,
        )
        return [rebalance_run_request(self._group, config, watch.target_offset)]

    def _summary(self, watch: GroupObserver) -> str:
        now = self._timing.steady()
        lines = list(sentences(watch.state, now))
        if self._hold is not None:
            lines.append(
                f"{self._hold.why}: until then this waits: {watch.recommend(now, target_stands=True)[1].reason}"
            )
        return "; ".join([*filter(None, (self._trouble, self._unmeasured)), *lines])
