"""Theory of operation of the controller, and its transition table.

One controller looks after one group. It is a function of values: `controller.step(state, event, now)` gives the next
state and the commands to carry out; it reads no clock and no topic. Whatever it knows it has read from the topics or
has got from the fleet and the monitor, so a controller may be killed at any point and another one goes on from
there: there is nothing to save.

Level, not edge. Every message carries the whole of what it speaks of, and every decision is worked out anew from what
is known now: who shall read what (the newest Target), who may hold what (reports, and Assignments not yet acted on),
who is dead. `reconcile` turns these into the next Assignments. So a lost, doubled or late message delays and does no
harm, and in no state is there anything to roll back.

The life of a change:

1. *Synchronize*: fence every older controller, only then read the topics to their ends. From here on nobody else
   writes. A consumer that is silent stops nothing: only what it may still hold stays where it is.
2. *Sentinel*: watch. What people want (paused, stopped) is carried out; missing consumers are started; an exit
   condition (see `sentinel.Reason`) asks for another packing, and is heard if that plan is another or a better one. A
   consumer of the wrong version is replaced by way of a spare.
3. *Reassign*: pack, and write the Target together with the first Assignments of the change, in one transaction. Killed
   before the commit: nothing has happened. Killed after it: the next controller finds the Target and carries it out.
   When the outcome is not known (the broker did not answer), the controller fences again, which ends the transaction
   one way or the other, and reads what has come of it.
4. *Group Management*: start who is missing, wait for their first report, take partitions away, wait for the reports
   without them, give them to their new owners, retire who is empty. Until the group is as the Target has it, or the
   time is over, or something has happened that asks for another look: a death, a restart, a failed start, other
   partitions.

The controller lives as long as its process (the bare loop), or for one change only (`until_done`: a rebalance run),
which goes from Synchronize straight to Reassign and ends where the bare loop would go back to Sentinel.

When does silence count? Only while the controller listens: it is measured up to the last read, and after a gap in
reading (the controller was frozen, or Kafka was away) it counts from anew.

References:
    Landau 2022, section "Controller", figure "Controller State Machine". Departs from it: sets instead of start and
    stop messages, so that a message may be lost; see `group.protocol.messages`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from kgs_core.errors import ProtocolError


class State(StrEnum):
    """State of the controller."""

    SYNCHRONIZE = "Synchronize"
    SENTINEL = "Sentinel"
    REASSIGN = "Reassign"
    GROUP_MANAGEMENT = "Group Management"
    ENDED = "Ended"


class Cause(StrEnum):
    """Cause of going on to another state."""

    SYNCHRONIZED = "synchronized"
    ASKED = "synchronized for one change"
    ANOTHER_TARGET = "another Target is due"
    OTHER_ASSIGNMENTS = "other assignments are due"
    TARGET_WRITTEN = "Target written"
    TARGET_STANDS = "the Target stands"
    CONVERGED = "converged"
    SUPERSEDED = "superseded"
    TIMED_OUT = "timed out"
    DONE = "the one change is over"
    OUTCOME_UNKNOWN = "outcome unknown"
    FENCED = "fenced"


TRANSITIONS: Mapping[tuple[State, Cause], State] = MappingProxyType(
    {
        # Fenced and read to the end: what is known now can only be changed by this controller
        (State.SYNCHRONIZE, Cause.SYNCHRONIZED): State.SENTINEL,
        # A rebalance run was started because an exit condition holds; it is looked at once more
        (State.SYNCHRONIZE, Cause.ASKED): State.REASSIGN,
        # Kafka did not answer: nothing has been decided yet, so begin again
        (State.SYNCHRONIZE, Cause.OUTCOME_UNKNOWN): State.SYNCHRONIZE,
        # An exit condition holds and its plan differs, a consumer is to be replaced, or spares lack
        (State.SENTINEL, Cause.ANOTHER_TARGET): State.REASSIGN,
        # No other packing is due, but the group differs from Target and desired state: a consumer is back, say
        (State.SENTINEL, Cause.OTHER_ASSIGNMENTS): State.GROUP_MANAGEMENT,
        # The Target and the first assignments of the change are committed
        (State.REASSIGN, Cause.TARGET_WRITTEN): State.GROUP_MANAGEMENT,
        # The plan is the Target's own, and the group is not there yet
        (State.REASSIGN, Cause.TARGET_STANDS): State.GROUP_MANAGEMENT,
        # A rebalance run has found nothing to do, or no measurement that is fresh enough to pack
        (State.REASSIGN, Cause.DONE): State.ENDED,
        # Nobody knows whether it is written: fence, and read what has come of it
        (State.REASSIGN, Cause.OUTCOME_UNKNOWN): State.SYNCHRONIZE,
        (State.GROUP_MANAGEMENT, Cause.OUTCOME_UNKNOWN): State.SYNCHRONIZE,
        # Everybody reads what the Target gives them, and nobody runs who should not
        (State.GROUP_MANAGEMENT, Cause.CONVERGED): State.SENTINEL,
        # The group has changed under the plan: a death, a restart, failing starts, other partitions
        (State.GROUP_MANAGEMENT, Cause.SUPERSEDED): State.SENTINEL,
        # It takes too long: what is done is done, the rest is looked at anew
        (State.GROUP_MANAGEMENT, Cause.TIMED_OUT): State.SENTINEL,
        # A rebalance run ends when its change has converged, is superseded or timed out
        (State.GROUP_MANAGEMENT, Cause.DONE): State.ENDED,
        # A newer controller has the right to write: two would undo each other's work
        (State.SYNCHRONIZE, Cause.FENCED): State.ENDED,
        (State.SENTINEL, Cause.FENCED): State.ENDED,
        (State.REASSIGN, Cause.FENCED): State.ENDED,
        (State.GROUP_MANAGEMENT, Cause.FENCED): State.ENDED,
    }
)
"""(state, cause) -> where it leads. What is not here is a fault of the controller."""


def follow(state: State, cause: Cause) -> State:
    """The state that `cause` leads to. A ProtocolError where the table has no such transition."""
    to = TRANSITIONS.get((state, cause))
    if to is None:
        raise ProtocolError(
            f"controller: {state}: cannot continue because of '{cause}': a fault of kgs, please report it"
        )
    return to
