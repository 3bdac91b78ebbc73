"""Rounds of a group member, and between two of them the newest assignment.

Only this loop commits. Between two rounds, and nowhere else, it lets go of what an assignment took away and takes up
what one gave. At that point the only batches in flight are those of late tables; it waits for those whose topics lose
a partition. What may be reported when is explained in `group.membership.membership`.
"""

import logging
import time

from kgs_core.group.membership.member import Decision, Facts
from kgs_core.group.membership.membership import Membership
from kgs_core.ingest.driver.round_report import RoundReport
from kgs_core.ingest.opening.owned_topics import PATIENCE_S
from kgs_core.lineage.sender import ConsumerLineage
from kgs_core.model import TopicPartition, numbers_by_topic
from kgs_core.runtime.consumer_context import ConsumerContext
from kgs_core.runtime.membership_threads import SharedMembership
from kgs_core.runtime.throughput_log import ConsumerStatus
from kgs_core.system.failpoints import failpoint
from kgs_core.system.shutdown import StopFlag

IDLE_S = 1.0
STOP_CHECK_S = 0.1
KEEP_WARM_S = 20.0
"""Spark ends a Python worker that was idle for a minute, and Kafka's client with it."""
_log = logging.getLogger(__name__)


class BatchLoop:
    """Reads what the membership decides."""

    def __init__(
        self,
        reader: ConsumerContext,
        membership: SharedMembership,
        status: ConsumerStatus,
        topics_refresh_s: float,
        lineage: ConsumerLineage | None = None,
    ) -> None:
        self._reader = reader
        self._topics = reader.topics
        self._membership = membership
        self._status = status
        self._topics_refresh_s = topics_refresh_s
        self._lineage = lineage
        self._refresh_at = float("inf")
        self._decision = Decision()
        self._is_taken_up = True
        self._warmed: set[str] = set()
        self._warmed_at = time.monotonic()
        self._stop = StopFlag()

    def run(self, stop: StopFlag) -> None:
        """Run rounds until an end is asked for or assigned, and nothing is held any more.

        Raises:
            ConfigError, PermanentError, TransientError: see `ConsumerContext.attempt`.
        """
        self._stop = stop

        def wait(seconds: float) -> None:
            end = time.monotonic() + seconds
            while not stop.is_set and (left := end - time.monotonic()) > 0:
                if self._membership.wait(lambda m: not m.is_acted_on, min(left, STOP_CHECK_S)):
                    return

        def step() -> None:
            report = self._step()
            if report is None and not self._membership.now.ended:
                wait(IDLE_S if self._topics.threads.is_idle else STOP_CHECK_S)
            self._note(report or RoundReport())

        try:
            goes_on = True
            while goes_on and not self._membership.now.ended:
                if stop.is_set:
                    self._membership.change(Membership.asked_to_end)
                goes_on = self._reader.attempt(step, wait, stop)
        finally:
            self._reader.ingest.settle()  # the last word, that nothing is held, follows
        self._status.write(self._topics.states.values())

    def _note(self, report: RoundReport) -> None:
        states = self._topics.states.values()
        self._status.note(report, states)
        self._reader.zone_bytes.add(report.received)
        if report.batches:
            self._membership.landed()
        if self._lineage is not None:
            self._lineage.saw(each for s in states for each in s.tables)

    def _step(self) -> RoundReport | None:
        """Act on the newest assignment, then one round; None when there is nothing to read."""
        self._reader.runner.take_your_time()
        ingest = self._reader.ingest
        if not self._membership.now.is_acted_on:
            self._act(self._membership.now.decision)
        if self._membership.now.ended:
            return None
        begun = self._membership.change(lambda m: m.began(ingest.late_since or time.monotonic()))
        try:
            if not begun.is_acted_on:  # an assignment that comes from here on interrupts the round
                return RoundReport()
            self._take_up()
            return self._round()
        finally:
            facts = self._facts()
            self._membership.change(lambda m: m.noted(facts).rested(ingest.late_since))

    def _facts(self) -> Facts:
        topics, decision = self._topics, self._decision
        ready = topics.openable(decision.pending)
        # Before the first look at a topic there is nothing to say of it
        unready = {tp: why for tp in decision.pending - ready if (why := topics.problem_of(tp))}
        return Facts(
            topics.reasons(decision.owned),
            topics.positions(),
            self._status.bytes_per_s,
            bad_shares=self._status.bad.shares,
            ready=ready,
            unready=unready,
            work=self._reader.zone_bytes.added_to(self._status.work),
            flat_out=self._status.flat_out,
        )

    def _act(self, decision: Decision) -> None:
        before = self._membership.now.owned
        self._reader.ingest.settle({tp.topic for tp in before - decision.owned})
        self._topics.let_go(decision.owned, decision.pending)
        self._decision = decision
        self._is_taken_up = False
        failpoint("assignment-applied")
        self._membership.change(lambda m: m.acted(decision, time.monotonic()))
        _log_difference("StopConsuming", before - decision.owned, decision)
        _log_difference("StartConsuming", decision.owned - before, decision)

    def _take_up(self) -> None:
        """Read new partitions from their tables' positions; open topics when first needed, also those that come.

        Other threads ask the tables: one that has not answered is read in a later round, and delays no other.
        """
        now = time.monotonic()
        self._topics.take_in(self._ours)
        if not self._is_taken_up:
            if not self._own_at_once():
                self._refresh_at = now
            self._is_taken_up = True
        if now >= self._refresh_at:
            topics = {tp.topic for tp in self._decision.owned | self._decision.pending}
            again = self._topics.refresh(topics, self._ours)
            ended = time.monotonic()
            # What waits long for an answer is not asked for all the time: what is open is read meanwhile
            again = float("inf") if again is None else max(again, ended - now)
            self._refresh_at = ended + min(self._topics_refresh_s, again)
        self._topics.retry(self._ours)
        self._warm_topics()

    def _warm_topics(self) -> None:
        """Start the workers of a coming topic's transform now, while another consumer still reads it."""
        states = self._topics.states
        self._warmed &= states.keys()
        for topic in {tp.topic for tp in self._decision.pending} & (states.keys() - self._warmed):
            self._warmed.add(topic)
            progress = states[topic].progress
            # Else they are up, and would lose what their client has fetched ahead
            if progress.uses_dataframe and not progress.owned:
                self._reader.runner.warm_topic(states[topic].job())

    def _own_at_once(self) -> bool:
        """Own the partitions of open topics, without asking Kafka; returns whether that was all."""
        wanted = sorted(numbers_by_topic(self._decision.owned).items())
        owned = [self._topics.own(topic, frozenset(partitions), self._ours) for topic, partitions in wanted]
        self._topics.take_in(self._ours, PATIENCE_S)
        return all(owned) and all(tp.topic in self._topics.states for tp in self._decision.pending)

    def _ours(self, topic: str, partitions: int) -> frozenset[int]:
        return frozenset(tp.partition for tp in self._decision.owned if tp.topic == topic and tp.partition < partitions)

    def _round(self) -> RoundReport | None:
        ingest = self._reader.ingest
        if any(state.progress.owned for state in self._topics.states.values()):
            return ingest.round(self._is_interrupted)
        now = time.monotonic()
        if now - self._warmed_at > KEEP_WARM_S:
            self._warmed_at = now
            self._reader.runner.warm()
        return None

    def _is_interrupted(self) -> bool:
        """Whether an assignment or a signal waits for the end of the round, so that reading ahead is in vain."""
        return self._stop.is_set or not self._membership.now.is_acted_on


def _log_difference(name: str, tps: frozenset[TopicPartition], decision: Decision) -> None:
    if tps:
        _log.info("%s assignment=%s partitions=%s", name, decision.offset, ",".join(map(str, sorted(tps))))
