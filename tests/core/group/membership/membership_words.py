"""A member of a test, and what is said to it and by it."""

from kgs_core.group.membership.member import Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment, Received
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

PROCESS = a_process(17, "run-3")
ME = Member(ConsumerId(3), Incarnation("me"))
OTHER = Member(ConsumerId(3), Incarnation("other"))
PACE = MembershipTiming(heartbeat_s=2, suspect_after_s=30, batch_timeout_s=300)
A, B, C = (TopicPartition("t", p) for p in range(3))


def member(now=0.0):
    return Membership.join(Identity(ME, PROCESS, "1.0", "abc"), PACE, now)


def gives(offset, *owned, to=ME, **more):
    return Received(MemberAssignment(to, frozenset(owned), **{k: frozenset(v) for k, v in more.items()}), offset, 0)


def retire(offset, to=ME):
    return Received(MemberAssignment(to, retire=True), offset, 0)


def act(membership, now=0.0):
    """What the batch loop does between two rounds."""
    return membership.acted(membership.decision, now)


def said(membership, now):
    """The message that is due reaches the log; which it was."""
    membership, message = membership.next_message(now)
    assert message is not None
    return membership.appended(message, now), message


def reading(*owned, offset=5, now=0.0):
    """A member that owns something, and has said so."""
    membership, _ = said(member(now), now)
    return said(act(membership.received([gives(offset, *owned)], now), now), now)[0]
