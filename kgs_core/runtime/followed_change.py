"""A change that somebody else goes on with, followed to its end without a write."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kgs_core.errors import TransientError
from kgs_core.group.controller.desired_state import is_settled
from kgs_core.group.controller.reading import read_on
from kgs_core.group.controller.state import ControllerOutcome, ControllerState, Result
from kgs_core.group.protocol import Message, Received
from kgs_core.ports import GroupTopicReader
from kgs_core.runtime.controller_loop import POLL_S

_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of what is known of a group.

    Attributes:
        reader: opens one; None: the group has no topics any more.
        hear: told of everything that is read.
        clock: seconds, steady.
    """

    reader: Callable[[], GroupTopicReader | None]
    hear: Callable[[Sequence[Received[Message]]], None]
    clock: Callable[[], float]


class Followed(NamedTuple):
    """The end of a change, and what was known of the group then."""

    outcome: ControllerOutcome
    state: ControllerState


def follow_change(sources: Sources, state: ControllerState, target_offset: int | None, end: float) -> Followed:
    """Follow the change to the Target at an offset, from `state` on, for as long as it stands, and until `end`.

    Raises:
        PortError: Kafka refuses. If it does not answer, that is waited for.
    """
    reader, has_read = None, False
    while True:
        try:
            reader = reader if reader is not None else sources.reader()
            if reader is None:
                return Followed(ControllerOutcome(Result.SUPERSEDED, "the group's topics are gone"), state)
            messages = reader.poll(POLL_S) if has_read else reader.read_to_end()
            has_read = True
            sources.hear(messages)
            now_known = read_on(state, messages, sources.clock())
            if now_known.view.target is None or now_known.view.target.offset != target_offset:
                return Followed(ControllerOutcome(Result.SUPERSEDED, "another change has begun"), state)
            state = now_known
            if is_settled(state):
                return Followed(ControllerOutcome(Result.CONVERGED), state)
        except TransientError as e:
            time.sleep(min(e.retry_after_s, _LONGEST_PAUSE_S))
        if sources.clock() >= end:
            return Followed(ControllerOutcome(Result.TIMED_OUT, "whoever goes on with it was not there in time"), state)
