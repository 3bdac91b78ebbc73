"""Consumers as the fleet runs them: the real membership, with a batch loop that takes time and no data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgs_core.errors import TransientError
from kgs_core.group.membership.member import Facts, Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Ending, FlatOut, Heartbeat, Incarnation, Member, Process, Report
from kgs_core.model import ConsumerId, TopicPartition
from tests.world.chance import Chance
from tests.world.ports import SimAssignmentReader, SimReportWriter
from tests.world.topics import Topics

KILLED = -9


@dataclass(frozen=True, slots=True)
class Habits:
    """Habits of simulated consumers.

    Attributes:
        starts_in_s: from the start of the process to its first report.
        drains_in_s: from an assignment that takes partitions away until no batch with them is in hand.
        cannot_open: partitions that this version and configuration cannot read -> why.
    """

    pace: MembershipTiming
    starts_in_s: float = 1.0
    drains_in_s: float = 1.0
    version: str = "1"
    config_hash: str = "a"
    cannot_open: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(slots=True)
class SimConsumer:
    """One process.

    Attributes:
        membership: None until it has opened its queue.
        is_frozen: it lives and does nothing (SIGSTOP).
        exit_code: None while it lives.
        fails: it will end instead of joining.
        stopped: partitions that cannot be read -> why.
        bad_shares: topics with too many bad records -> share of these.
        flat_out: what it reads when it is flat out.
    """

    topics: Topics
    chance: Chance
    habits: Habits
    consumer: ConsumerId
    handle: str
    pid: int
    started_at: float
    fails: bool = False
    consumer_class: str = ""
    membership: Membership | None = None
    is_frozen: bool = False
    exit_code: int | None = None
    stopped: dict[TopicPartition, str] = field(default_factory=dict)
    bad_shares: dict[str, float] = field(default_factory=dict)
    flat_out: FlatOut | None = None
    _assignments: SimAssignmentReader | None = None
    _lets_go_at: float | None = None
    _is_asked_to_end: bool = False
    _error: str = ""

    @property
    def lives(self) -> bool:
        return self.exit_code is None

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Everything that it may still commit."""
        return self.membership.owned if self.membership and self.lives else frozenset()

    @property
    def member(self) -> Member:
        return Member(self.consumer, Incarnation(f"{self.consumer}-{self.pid}"))

    @property
    def process(self) -> Process:
        return Process({"pid": self.pid, "run_id": self.handle})

    @property
    def is_at_rest(self) -> bool:
        """Whether it has joined, has done all that it was told, and is not about to end."""
        return (
            self.membership is not None
            and self.membership.is_acted_on
            and self.membership.ending is None
            and not self._is_asked_to_end
            and not self._error
        )

    def kill(self) -> None:
        self.exit_code = KILLED if self.exit_code is None else self.exit_code

    def ask_to_end(self) -> None:
        """SIGTERM."""
        self._is_asked_to_end = True

    def fail(self, why: str) -> None:
        """Its batch loop meets an error that it does not survive."""
        self._error = why

    def turn(self) -> None:
        """Everything that it does in a second or so, in order."""
        for do in (self.join, self.receive, self.act, self.report):
            do()

    def join(self) -> None:
        """Open the queue at its end, once the process is up; or end."""
        now = self.topics.clock.now
        if self._is_idle() or self.membership is not None:
            return
        if self._is_asked_to_end:
            self.exit_code = 0
            return
        if now < self.started_at + self.habits.starts_in_s:
            return
        if self.fails:
            self.exit_code = 1
            return
        self._assignments = SimAssignmentReader(self.topics, self.chance, self.consumer)
        identity = Identity(
            self.member, self.process, self.habits.version, self.habits.config_hash, self.consumer_class
        )
        self.membership = Membership.join(identity, self.habits.pace, now)

    def receive(self) -> None:
        """The thread of assignments."""
        if self._is_idle() or self.membership is None or self._assignments is None:
            return
        now = self.topics.clock.now
        self.membership = self.membership.received(self._assignments.newest(0.0), now).listened(now)
        if self._is_asked_to_end:
            self.membership = self.membership.asked_to_end()
        if self._error:
            self.membership = self.membership.failed(self._error)
        if self._takes_away() and self._lets_go_at is None:
            self._lets_go_at = now + self.habits.drains_in_s

    def act(self) -> None:
        """The batch loop, when its batch is over: begins what is new at once, and drains before it lets go."""
        if self._is_idle() or self.membership is None or self.membership.is_acted_on:
            return
        now = self.topics.clock.now
        if self._takes_away() and self._lets_go_at is not None and now < self._lets_go_at:
            return
        self._lets_go_at = None
        self.membership = self.membership.acted(self.membership.decision, now)

    def report(self) -> None:
        """The thread of reports; after the last word the process ends, and when it cannot be heard for too long."""
        if self._is_idle() or self.membership is None:
            return
        now = self.topics.clock.now
        at_work = self.membership.landed(now) if self.membership.owned else self.membership
        self.membership, message = at_work.noted(self._facts(self.membership)).next_message(now)
        if message is not None:
            self._send(message, now)
        if self.membership.is_over:
            self.exit_code = 1 if self.membership.ending is Ending.FAILED else 0
        elif self.membership.fence_reason(now) is not None:
            self.exit_code = 1

    def _facts(self, membership: Membership) -> Facts:
        refused = self.habits.cannot_open
        pending = membership.decision.pending if membership.is_acted_on else frozenset()
        stopped = {**{tp: why for tp, why in refused.items() if tp in membership.owned}, **self.stopped}
        unready = {tp: why for tp, why in refused.items() if tp in pending}
        lake, written = self.topics.read, self.topics.written
        lake |= {tp: end for tp, end in written.items() if tp in membership.owned and tp not in stopped}
        positions = {tp: lake[tp] for tp in membership.owned if tp in lake}
        return Facts(
            stopped,
            positions,
            bad_shares=self.bad_shares,
            ready=pending - unready.keys(),
            unready=unready,
            flat_out=self.flat_out,
        )

    def _send(self, message: Report | Heartbeat, now: float) -> None:
        try:
            SimReportWriter(self.topics, self.chance).append(message, 0.0)
        except TransientError:
            return
        if self.membership is not None:
            self.membership = self.membership.appended(message, now)

    def _is_idle(self) -> bool:
        return self.is_frozen or not self.lives

    def _takes_away(self) -> bool:
        return self.membership is not None and bool(self.owned - self.membership.decision.owned)
