"""One tick of the load sensor: looks at the group once a second until there is something to do, or the tick is over.

Nothing lasts from tick to tick but what the topics and Dagster's database hold. So a tick may be lost, and two may run
at once: what one of them asks for is asked for once, by its key.

A run takes some seconds to begin. What cannot wait for it, because a partition is unread or a consumer is overloaded,
is carried out here and now, by the controller's own fenced steps; the run that is asked for then goes on from there.
While a run is in progress, it alone does what is due.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dagster as dg

from kgs_core.errors import FencedError, KgsError, MeasurementError, TransientError
from kgs_core.group.controller.observer import GroupObserver, Recommendation
from kgs_core.group.controller.state import Options
from kgs_core.group.protocol import Message, Received
from kgs_core.planning.load import Load
from kgs_core.ports import GroupTopicReader
from kgs_core.reporting.bad_shares import judged_topics
from kgs_core.reporting.group_alerts import Alerts, group_alerts
from kgs_core.reporting.sentences import sentences
from kgs_core.reporting.status import GroupStatus, observed_status
from kgs_core.runtime.controller_loop import MeasurementSource, fleet_seen
from kgs_core.runtime.rebalance_ports import Clocks, GroupTopicAccess, Reference, RunPorts
from kgs_core.runtime.rebalance_run import RebalanceRun
from kgs_dagster.checks.bad_records import Judged
from kgs_dagster.jobs.rebalance import Hold, RebalanceRuns, rebalance_run_request
from kgs_dagster.launch import DagsterFleet, consumer_run_request
from kgs_dagster.resources import RebalanceConfig
from kgs_dagster.settings import GroupConfig

LENGTH_S = 40.0
"""Dagster gives a tick up after 60 s. What Kafka does not answer may take 15 s longer than this, a change that is begun
at the end 10 s. With both the tick is lost, and the next one finds what it has written."""
STEP_S = 1.0
CARRY_OUT_S = 5.0
"""For each half of a change that cannot wait: until it is written, and until who is there reads what they shall."""
AGAIN_S = 5.0
"""Between two tries at a change that does not come about: each fences whoever else may be at it."""
LATE_S = 0.5
"""For what was just written to come back."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SensorPorts:
    """Ports of a tick."""

    measurements: MeasurementSource
    topics: GroupTopicAccess
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


@dataclass(frozen=True, slots=True)
class AtHand:
    """Port `Feed` with the one measurement that a change is decided by.

    Attributes:
        last: None: there is none that is young enough, and nothing is packed.
    """

    last: Load | None
    steady: Callable[[], float]

    def at(self, offset: int | None) -> Load | None:  # noqa: ARG002 - the port's signature
        """That one."""
        return None if self.last is None else self.last.as_of(self.steady())

    def newest(self) -> Load | None:
        """None: there is no newer one."""
        return None

    def measure(self) -> Load:
        """Raise a MeasurementError: a tick has no time for that."""
        raise MeasurementError("the measurement that the change was decided by has grown too old")


class LongPoll:
    """One tick."""

    def __init__(self, group: GroupConfig, options: Options, ports: SensorPorts, timing: Timing) -> None:
        self._group = group
        self._options = options
        self._ports = ports
        self._timing = timing
        self._interval_s = max(STEP_S, group.settings.monitor.interval_s)
        self._sample_due_s = timing.steady()
        self._reader: GroupTopicReader | None = None
        self._watch: GroupObserver
        self._offset: int | None = None
        self._recorded: int | None = None
        self._writes_from = float("-inf")
        self._failure = ""
        self._hold: Hold | None = None
        self._trouble = self._unmeasured = ""

    def run(self) -> Found:
        """Until there are runs to ask for, or the time is over.

        Raises:
            KgsError: the group cannot be looked at.
        """
        timing = self._timing
        end = timing.steady() + timing.length_s
        self._reader = self._ports.topics.reader()
        messages: Sequence[Received[Message]] = self._reader.read_to_end() if self._reader else []
        self._watch = GroupObserver.begin(self._options, messages, timing.steady(), round(timing.wall() * 1000))
        while True:
            due = timing.steady() + STEP_S
            self._trouble = ""
            try:
                requests = self._step()
            except TransientError as e:
                requests, self._trouble = [], str(e)
            if requests or timing.steady() + STEP_S > end:
                watch = self._watch
                judged = judged_topics(watch.state.view, watch.state.suspects())
                seen = observed_status(self._group.settings, watch.state, timing.steady())
                alerts = group_alerts(seen, has_listened=self._has_listened(watch))
                return Found(tuple(requests), self._offset, self._summary(watch, seen), judged, alerts)
            timing.sleep(max(0.0, due - timing.steady()))

    def _has_listened(self, watch: GroupObserver) -> bool:
        """Whether for long enough to tell who is silent, which a tick that ends early has not."""
        listened_s = self._timing.steady() - watch.state.listening.silence_counts_from
        return listened_s >= self._options.membership.suspect_after_s

    def _step(self) -> list[dg.RunRequest]:
        self._hear()
        watch, now = self._watch, self._timing.steady()
        after, recommended = watch.recommend(now)
        self._hold = self._held(watch, recommended)
        may_write = now >= self._writes_from and (self._hold is None or not self._hold.is_writing)
        if recommended.is_urgent and may_write:
            self._writes_from = now + AGAIN_S
            self._carry_out(now, packs=recommended.packs)
            watch, now = self._watch, self._timing.steady()
            after, recommended = watch.recommend(now)
            self._hold = self._held(watch, recommended)
            self._writes_from = now + AGAIN_S if recommended.is_urgent else now
        config = None
        if self._hold is not None:
            after, recommended = watch.recommend(now, target_stands=self._hold.target_stands)
        elif self._is_unrecorded(watch):
            after, recommended = watch.recommend(now, target_stands=True)
            config = self._record(watch, now)
        elif recommended.reason and (self._failure or not recommended.is_urgent):
            config = self._config(watch, now, recommended.reason)
        for handle in recommended.unwanted:
            self._ports.fleet.stop_unwanted(handle)
        for handle in recommended.overdue:
            self._ports.fleet.stop_overdue(handle)
        runs = [] if config is None else [rebalance_run_request(self._group, config, watch.state.view.target)]
        requests = [*self._launches(recommended), *runs]
        self._watch = after
        return requests

    def _hear(self) -> None:
        """What has come. It is kept at once: it does not come again where what is asked next raises an error."""
        ports, timing = self._ports, self._timing
        if timing.steady() >= self._sample_due_s:
            self._sample_due_s = timing.steady() + self._interval_s - STEP_S / 2
            if (measured := self._measured()) is not None:
                self._offset = measured.measurement_offset
                self._watch = self._watch.observed(measured, timing.steady())
        if self._reader is not None:
            self._watch = self._watch.read(self._reader.poll(0.0), timing.steady())
        self._watch = self._watch.observed(fleet_seen(ports.fleet, self._watch.state.view), timing.steady())

    def _carry_out(self, now: float, *, packs: bool) -> None:
        """Begin the change that is due, and take in what came of it; where it could not be done, a run says why."""
        measured = self._watch.state.fresh(now) if packs else None  # a better packing waits for its run
        timing, newest = self._timing, self._watch.newest_report
        reference = Reference(
            report_offset=newest.offset if newest else None,
            report_age_s=now - newest.at if newest else 0.0,
            packs=measured is not None,
        )
        ports = RunPorts(
            self._ports.topics, self._ports.fleet, AtHand(measured, timing.steady), Clocks(timing.steady, timing.wall)
        )
        stands, self._failure = None, ""
        try:
            stands = RebalanceRun(self._group.name, self._options, reference, ports).carry_out(CARRY_OUT_S)
        except FencedError:
            _log.info("another controller is at work")
        except KgsError as e:
            self._failure = f"left to a run: {e}"
        if self._reader is None:  # its topics may have been made just now
            reader = self._ports.topics.reader()
            news = reader.read_to_end() if reader is not None else []
            self._reader = reader
        else:
            news = self._reader.poll(LATE_S)
        self._watch = self._watch.read([*news, *filter(None, [stands])], timing.steady())
        seen = fleet_seen(self._ports.fleet, self._watch.state.view)
        self._watch = self._watch.observed(seen, timing.steady())

    def _measured(self) -> Load | None:
        """Consumers that are missing are started, and assignments given, without a measurement, too."""
        self._unmeasured = ""
        try:
            return self._ports.measurements.newest()
        except KgsError as e:  # one that is refused must not end the look at the group
            self._unmeasured = str(e)
            return None

    def _launches(self, recommended: Recommendation) -> list[dg.RunRequest]:
        fleet, target = self._ports.fleet, self._watch.state.target
        classes = target.class_of if target is not None else {}
        return [
            consumer_run_request(
                self._group,
                each,
                fleet.next_attempt(each),
                consumer_class=classes.get(each, ""),
                as_pod=fleet.launches_pods,
            )
            for each in recommended.launch
        ]

    def _held(self, watch: GroupObserver, recommended: Recommendation) -> Hold | None:
        is_due = bool(recommended.reason) or recommended.is_urgent or self._is_unrecorded(watch)
        return self._ports.rebalances.hold(watch.target_offset) if is_due else None

    def _is_unrecorded(self, watch: GroupObserver) -> bool:
        """Whether no run records the newest Target: a tick has written it just now, or was lost behind that."""
        target = watch.state.view.target
        if target is None or target.offset == self._recorded:
            return False
        if self._ports.rebalances.is_recorded(target, self._timing.wall()):
            self._recorded = target.offset
        return target.offset != self._recorded

    def _record(self, watch: GroupObserver, now: float) -> RebalanceConfig | None:
        target = watch.state.view.target
        if target is None:
            return None
        config, offset = self._config(watch, now, target.message.reason), target.message.measurement_offset
        # That may be an old one; whether the run packs is for the newest to say, or it failed for want of one
        return config.model_copy(update={"written": target.offset, "measurement_offset": offset})

    def _config(self, watch: GroupObserver, now: float, reason: str) -> RebalanceConfig:
        newest, measured = watch.newest_report, watch.state.fresh(now)
        return RebalanceConfig(
            measurement_offset=measured.measurement_offset if measured is not None else None,
            reason=reason,
            attempt=self._ports.rebalances.next_attempt(),
            applies_plan=False,
            packs=measured is not None,
            report_offset=newest.offset if newest else None,
            report_age_s=round(now - newest.at, 3) if newest else 0.0,
        )

    def _summary(self, watch: GroupObserver, seen: GroupStatus) -> str:
        now = self._timing.steady()
        lines = list(sentences(seen, watch.state, now))
        if self._hold is not None:
            waits = watch.recommend(now, target_stands=True)[1].reason or "the record of the last change"
            lines.append(f"{self._hold.why}: until then this waits: {waits}")
        return "; ".join([*filter(None, (self._trouble, self._unmeasured, self._failure)), *lines])
