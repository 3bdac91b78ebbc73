"""A member whatever order the messages come in: it never reports less than it may commit."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kgs_core.group.membership.member import Decision, Facts
from kgs_core.group.protocol import Heartbeat, MemberAssignment, Phase, Received
from tests.core.group.membership.membership_words import ME, OTHER, A, B, C, act, gives, member, said

PARTITIONS = st.frozensets(st.sampled_from([A, B, C]))
RARELY = st.integers(0, 30).map(lambda n: n == 17)


class Anything(RuleBasedStateMachine):
    """A controller, a queue, a batch loop and a log of reports, each at its own pace.

    `may_commit` is what the loop could still commit, kept by the model alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.given = self.may_commit = frozenset({A, B})
        self.queue = [gives(0, A, B)]
        self.delivered = 1
        self.m, report = said(act(member().received(self.queue, 0)), 0)
        self.log = [report]
        self.decision: Decision | None = None

    @rule(owned=PARTITIONS, pending=PARTITIONS, retires=RARELY)
    def controller_assigns(self, owned, pending, retires):
        """`revoking` holds at least what the incarnation may hold, as rule 3 wants."""
        new = MemberAssignment(ME, owned, self.given - owned, pending, retires)
        self.given |= owned
        self.queue.append(Received(new, 2 * len(self.queue), 0))

    @rule(gift=RARELY)
    def controller_assigns_to_another(self, gift):
        self.queue.append(Received(MemberAssignment(OTHER, frozenset([A] if gift else [])), 2 * len(self.queue), 0))

    @rule(again=st.integers(0, 3), late=st.integers(0, 2))
    def assignments_come(self, again, late):
        first, end = max(0, self.delivered - again), max(self.delivered, len(self.queue) - late)
        self.m = self.m.received(self.queue[first:end], self.now)
        self.delivered = end

    @precondition(lambda self: self.m.busy_since is None and self.decision is None)
    @rule()
    def loop_lets_go(self):
        self.decision = self.m.decision
        self.may_commit &= self.decision.owned

    @precondition(lambda self: self.decision is not None)
    @rule()
    def loop_says_so_and_takes_up(self):
        self.m = self.m.acted(self.decision, self.now)
        self.may_commit = self.decision.owned
        self.decision = None

    @precondition(lambda self: self.m.busy_since is None and self.decision is None and not self.m.ended)
    @rule()
    def round_begins(self):
        self.m = self.m.began(self.now)

    @precondition(lambda self: self.m.busy_since is not None)
    @rule(stopped=PARTITIONS)
    def round_ends(self, stopped):
        self.m = self.m.noted(Facts(dict.fromkeys(stopped, "why"))).rested()

    @rule(really=RARELY)
    def somebody_wants_the_end(self, really):
        if really:
            self.m = self.m.asked_to_end()

    @rule(reaches_log=st.booleans(), answer_comes=st.booleans(), seconds=st.sampled_from([0, 1, 70]))
    def report(self, reaches_log, answer_comes, seconds):
        self.m, message = self.m.next_message(self.now)
        made_at, self.now = self.now, self.now + seconds
        if message is None:
            return
        if isinstance(message, Heartbeat):
            last = self.log[-1]
            assert (last.owned, last.applied, last.phase) == (self.m.owned, self.m.applied, self.m.phase)
        elif reaches_log:
            self.log.append(message)
        if reaches_log and answer_comes:
            self.m = self.m.appended(message, made_at)

    @invariant()
    def whatever_may_be_committed_is_in_the_reported_set(self):
        assert self.may_commit <= self.m.owned

    @invariant()
    def controller_knows_all_that_may_be_committed(self):
        """Rule 3, from what is in the topics alone."""
        last = self.log[-1] if self.log else None
        possible = last.owned if last else frozenset()
        mine = [r for r in self.queue if r.message.member == ME]
        if mine and (last is None or last.applied is None or mine[-1].offset > last.applied):
            possible |= mine[-1].message.owned | mine[-1].message.revoking
        assert self.may_commit <= possible

    @invariant()
    def nothing_is_decided_that_the_newest_own_assignment_does_not_give(self):
        mine = [r for r in self.queue[: self.delivered] if r.message.member == ME]
        given = mine[-1].message.owned if mine else frozenset()
        assert self.m.decision.owned <= given

    @invariant()
    def reports_are_in_order_and_the_end_is_the_end(self):
        sequences = [r.sequence for r in self.log]
        assert sequences == sorted(set(sequences))
        ended = [r.phase is Phase.ENDED for r in self.log]
        assert ended == sorted(ended)
        assert all(r.owned == frozenset() for r in self.log if r.phase is Phase.ENDED)


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=150, stateful_step_count=50)
