"""A consumer's membership in its group: assignments come in, what to own and what to report comes out. Pure.

One value holds everything that the batch loop, the thread of assignments and the thread of reports tell each other;
every call gives a new value. Times are seconds on the process's own steady clock.

The reported set always includes everything that the process may still commit:

- The batch loop asks for a `decision`, lets go what is not in it any more (no batch of it is in hand then), says
  `acted`, and only then begins to read what is new. So a partition is in the reported set before its first record is
  read, and leaves the set after the last batch with it has been committed or dropped.
- A report is made from the value as it is, never from what was last assigned.

Killed anywhere in between: nothing is lost, for the lake holds the positions, and what the controller has of us
(the last report, and every assignment after the one that it applied) holds everything that we could have committed.

Which incarnation is the newer one? The queue carries the assignments of all incarnations of our number. We must end
when a newer one has taken our place, and must not end because of an assignment to an older one: it may have been
written before the controller knew of us, or be the one that empties it. Two processes of one number that start at once
see each other's assignments in any mixture. What is certain is this:

1. The controller gives `owned` or `pending` to the newest incarnation that it knows, to no other one of that number.
2. An assignment to us in our queue proves that the controller that wrote it knew of us. One controller writes at a
   time, and whoever comes after it has read that assignment, too. So who wrote a *later* one knew of us as well.

Hence: an assignment to another incarnation that gives something, and stands in the queue behind an assignment to us,
names an incarnation that the controller holds for newer than us. Who is newer is the controller's to say (the one whose
first report is later); both twins read the same queue, so not both can conclude it: for the newer one, every gift to
the older one stands before its own first assignment. An incarnation that never got an assignment owns nothing and
stays, until it gets its first (empty, or to retire) and the next gift to its successor follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kgs_core.group.membership.member import Decision, Drains, Facts, Identity, MembershipTiming, degrees
from kgs_core.group.protocol import Ending, Heartbeat, Member, MemberAssignment, Phase, Received, Report
from kgs_core.model import TopicPartition

FULL_EVERY_S = 60.0
RESTS_AFTER_S = 5.0  # nothing is being read: the controller must know soon how far everything is
FENCE_FACTOR = 3
_NOTHING: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Membership:
    """One incarnation in its group, from its first report to its last; made by `join`.

    Attributes:
        assignment: the newest one to this incarnation.
        ending: why it drains and ends; None while it does not. The first reason counts.
        owned: everything that may still be committed.
        applied: offset of the last assignment acted on.
        ended: it has let go everything and takes nothing any more.
        busy_since: when the oldest round began of which something is in hand; None where nothing is.
        taken_at: when the oldest assignment came that takes something and is not acted on; None without one.
        last_report: the last full report, if it is known to be appended and no other one has been tried since.
        appended_at: when the last message known to be appended was made; at first, when the incarnation joined.
        listened_at: when the queue was last looked at with success; at first likewise.
        heard_since: since when reports have been appended without a gap of `suspect_after_s`.
        landed_at: when a batch was last committed.
    """

    identity: Identity
    pace: MembershipTiming
    appended_at: float
    listened_at: float
    heard_since: float = float("-inf")
    landed_at: float = float("-inf")
    assignment: Received[MemberAssignment] | None = None
    ending: Ending | None = None
    why: str = ""
    owned: frozenset[TopicPartition] = _NOTHING
    applied: int | None = None
    ended: bool = False
    facts: Facts = field(default_factory=Facts)
    busy_since: float | None = None
    taken_at: float | None = None
    drains: Drains = field(default_factory=Drains)
    sequence: int = 0
    last_report: Report | None = None
    reported_at: float = 0.0

    @classmethod
    def join(cls, identity: Identity, pace: MembershipTiming, now: float) -> "Membership":
        """An incarnation that can take assignments: its queue is open, and its first report is due."""
        return cls(identity, pace, appended_at=now, listened_at=now)

    @property
    def member(self) -> Member:
        """Which incarnation of which consumer this is."""
        return self.identity.member

    def received(self, assignments: Sequence[Received[MemberAssignment]], now: float) -> "Membership":
        """Assignments of our queue, oldest first; those seen before do no harm."""
        new = self
        for assignment in assignments:
            new = new._received_one(assignment, now)
        return new

    def _received_one(self, received: Received[MemberAssignment], now: float) -> "Membership":
        assignment = received.message
        if assignment.member.consumer != self.member.consumer:
            return self
        if self.assignment is not None and received.offset <= self.assignment.offset:
            return self
        if assignment.member == self.member:
            new = self._ending(Ending.RETIRED) if assignment.retire else self
            new = replace(new, assignment=received)
            takes = bool(self.owned - new.decision.owned)
            return replace(new, taken_at=now) if takes and self.taken_at is None else new
        gives = bool(assignment.owned or assignment.pending)
        return self._ending(Ending.SUPERSEDED) if gives and self.assignment is not None else self

    def asked_to_end(self) -> "Membership":
        """Somebody wants the process to end: a signal, or the death of the process that it belongs to."""
        return self._ending(Ending.ASKED)

    def failed(self, why: str) -> "Membership":
        """An error of its own ends it: it drains where it can, and its last word says why."""
        return self._ending(Ending.FAILED, why)

    def _ending(self, ending: Ending, why: str = "") -> "Membership":
        return self if self.ending else replace(self, ending=ending, why=why)

    @property
    def decision(self) -> Decision:
        """What the newest assignment to us says; nothing at all once we are to end."""
        if self.assignment is None:
            return Decision(ends=self.ending is not None)
        assignment, offset = self.assignment.message, self.assignment.offset
        if self.ending:
            return Decision(offset=offset, ends=True)
        return Decision(assignment.owned, assignment.pending - assignment.owned, offset)

    @property
    def is_acted_on(self) -> bool:
        """Whether everything that has been decided is done."""
        decision = self.decision
        return (self.owned, self.applied, self.ended) == (decision.owned, decision.offset, decision.ends)

    def listened(self, now: float) -> "Membership":
        """The queue has been looked at, and answered."""
        return replace(self, listened_at=max(now, self.listened_at))

    def acted(self, decision: Decision, now: float) -> "Membership":
        """No batch is in hand, and none will be made, but of `decision.owned`."""
        drains = self.drains
        if self.taken_at is not None and self.owned - decision.owned:
            drains = drains.and_one_of(now - self.taken_at)
        new = replace(self, owned=decision.owned, applied=decision.offset, ended=decision.ends, drains=drains)
        # An assignment that came since the decision was asked for may take something of it
        return replace(new, taken_at=now if decision.owned - new.decision.owned else None)

    def end(self, now: float) -> "Membership":
        """Nothing is in hand, and nothing will be: the end of the batch loop, in order or after `failed`."""
        new = self.asked_to_end()
        return new if new.ended else new.acted(new.decision, now)

    def noted(self, facts: Facts) -> "Membership":
        """News of the partitions."""
        return replace(self, facts=facts)

    def landed(self, now: float) -> "Membership":
        """A batch is committed."""
        return replace(self, landed_at=now)

    def began(self, now: float) -> "Membership":
        """A round begins: from here on a batch may be in hand."""
        return replace(self, busy_since=now)

    def rested(self, since: float | None = None) -> "Membership":
        """The round is over: its batch is committed or dropped, but what is in hand `since` a round that began then."""
        return replace(self, busy_since=since)

    def deaf_reason(self, now: float) -> str | None:
        """Why it must drain and end: it is heard and cannot hear. Where it is not heard either, see `fence_reason`."""
        return self._deaf_for(FENCE_FACTOR, now) if self.is_heard(now) else None

    def fence_reason(self, now: float) -> str | None:
        """Why the process must end at once, whatever it is doing; None while it need not.

        A consumer that cannot be heard will be held for dead, and one that is stuck must not look alive. One that
        cannot hear has `suspect_after_s` more to end in order. One that cannot be heard and commits nothing waits for
        Kafka, as all do. Silence of the controller is no reason; nor is anything for who holds nothing any more.
        """
        silent_s = FENCE_FACTOR * self.pace.suspect_after_s
        if self.ended:
            return None
        if self.is_heard(now) and self.ending is None and (reason := self._deaf_for(FENCE_FACTOR + 1, now)):
            return reason
        is_at_work = self.ending is not None or now - self.landed_at <= self.pace.suspect_after_s
        if is_at_work and now - self.appended_at > silent_s:
            return f"no report could be appended for {silent_s:g} s ({FENCE_FACTOR} x suspect_after_s)"
        if self.busy_since is not None and now - self.busy_since > self.pace.batch_timeout_s:
            return f"batch older than batch_timeout_s={self.pace.batch_timeout_s:g}"
        return None

    def is_heard(self, now: float) -> bool:
        """Whether a report has been appended within `suspect_after_s`."""
        return now - self.appended_at <= self.pace.suspect_after_s

    def _deaf_for(self, factor: int, now: float) -> str | None:
        deaf_s = factor * self.pace.suspect_after_s
        if now - max(self.listened_at, self.heard_since) <= deaf_s:
            return None
        return f"no assignment could be read for {deaf_s:g} s ({factor} x suspect_after_s)"

    @property
    def phase(self) -> Phase:
        """What the incarnation is doing."""
        if self.ended:
            return Phase.ENDED
        return Phase.DRAINING if self.ending else Phase.READING

    @property
    def is_over(self) -> bool:
        """The last word is in the log."""
        return self.last_report is not None and self.last_report.phase is Phase.ENDED

    def due_in(self, now: float) -> float:
        """Seconds until there is something to send; 0 when there is now."""
        return max(0.0, min(self.appended_at + self.pace.heartbeat_s, self._full_due_at) - now)

    def next_message(self, now: float) -> "tuple[Membership, Report | Heartbeat | None]":
        """The message that is due: full on every change and now and then, else a heartbeat; None when nothing is.

        From here on the report that it replaces counts for nothing: whether this one reaches the log may stay unknown,
        and a heartbeat behind it would confirm sets that nobody is sure of.
        """
        if self.is_over or self.due_in(now) > 0:
            return self, None
        new = replace(self, sequence=self.sequence + 1)
        if now >= self._full_due_at:
            return replace(new, last_report=None, reported_at=now), self._report(new.sequence, now)
        return new, Heartbeat(self.member, new.sequence, self.phase, self.facts.bytes_per_s, self._batch_age(now))

    def appended(self, message: Report | Heartbeat, made_at: float) -> "Membership":
        """The message is in the log for certain."""
        last_report = message if isinstance(message, Report) else self.last_report
        new = self if self.is_heard(made_at) else replace(self, heard_since=made_at)
        return replace(new, last_report=last_report, appended_at=max(made_at, self.appended_at))

    @property
    def _full_due_at(self) -> float:
        last = self.last_report
        if last is None or self._is_news(last):
            return self.reported_at
        rests = not self.facts.bytes_per_s and last.positions != self._positions
        return self.reported_at + (RESTS_AFTER_S if rests else FULL_EVERY_S)

    def _is_news(self, last_report: Report) -> bool:
        # That a position moves is no change; that there is one is: it says that a new partition is being read.
        reported = (
            last_report.phase,
            last_report.applied,
            last_report.owned,
            dict(last_report.stopped),
            last_report.positions.keys(),
        )
        is_new = reported != (self.phase, self.applied, self.owned, self._stopped, self._positions.keys())
        is_new |= (last_report.ready, dict(last_report.unready)) != (self._ready, self._unready)
        # Of a share the same: which topics are bad is news, and which wholly; how bad the others are is not.
        return is_new or degrees(last_report.bad_shares) != degrees(self._bad_shares)

    @property
    def _stopped(self) -> dict[TopicPartition, str]:
        return {tp: reason for tp, reason in self.facts.stopped.items() if tp in self.owned}

    @property
    def _positions(self) -> dict[TopicPartition, int]:
        return {tp: offset for tp, offset in self.facts.positions.items() if tp in self.owned}

    @property
    def _bad_shares(self) -> dict[str, float]:
        topics = {tp.topic for tp in self.owned}
        return {topic: share for topic, share in self.facts.bad_shares.items() if topic in topics}

    @property
    def _ready(self) -> frozenset[TopicPartition]:
        return self.facts.ready & self.decision.pending

    @property
    def _unready(self) -> dict[TopicPartition, str]:
        pending = self.decision.pending
        return {tp: reason for tp, reason in self.facts.unready.items() if tp in pending}

    def _batch_age(self, now: float) -> float | None:
        # Not below zero, whoever reads the clock when: the codec refuses that, and a refused report is none
        return max(0.0, now - self.busy_since) if self.busy_since is not None and self.owned else None

    def _report(self, sequence: int, now: float) -> Report:
        return Report(
            member=self.member,
            sequence=sequence,
            phase=self.phase,
            bytes_per_s=self.facts.bytes_per_s,
            batch_age_s=self._batch_age(now),
            process=self.identity.process,
            applied=self.applied,
            owned=self.owned,
            stopped=self._stopped,
            positions=self._positions,
            version=self.identity.version,
            config_hash=self.identity.config_hash,
            consumer_class=self.identity.consumer_class,
            last_drain_s=self.drains.last_s,
            max_drain_s=self.drains.longest_s,
            drains=self.drains.count,
            bad_shares=self._bad_shares,
            ready=self._ready,
            unready=self._unready,
            ending=self.ending,
            why=self.why,
            work=self.facts.work,
            flat_out=self.facts.flat_out,
            zone=self.identity.zone,
        )
