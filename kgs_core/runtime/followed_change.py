"""A change that somebody else goes on with, followed to its end without a write."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgs_core.errors import TransientError
from kgs_core.group.controller.desired_state import is_settled
from kgs_core.group.controller.observer import GroupObserver
from kgs_core.group.controller.state import ControllerOutcome, Result
from kgs_core.group.protocol import Message, Received
from kgs_core.ports import GroupTopicReader
from kgs_core.runtime.controller_loop import POLL_S
from kgs_core.system.shutdown import StopFlag


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of what is known of a group.

    Attributes:
        reader: None: the group has no topics.
        hear: told of everything that is read.
        observe: an observer that has been told all that the topics say.
        clock: seconds, steady.
    """

    reader: GroupTopicReader | None
    hear: Callable[[Sequence[Received[Message]]], None]
    observe: Callable[[Sequence[Received[Message]]], GroupObserver]
    clock: Callable[[], float]


def follow_change(sources: Sources, target_offset: int | None, stop: StopFlag) -> ControllerOutcome | None:
    """The end of the change to the Target at an offset; None: it was not over when `stop` was set.

    Raises:
        PortError: Kafka refuses, or does not answer at the start.
    """
    reader = sources.reader
    messages = reader.read_to_end() if reader is not None else ()
    sources.hear(messages)
    watch = sources.observe(messages)
    while reader is not None and watch.target_offset == target_offset:
        if is_settled(watch.state):
            return ControllerOutcome(Result.CONVERGED)
        if stop.is_set:
            return None
        try:
            messages = reader.poll(POLL_S)
        except TransientError as e:
            time.sleep(min(e.retry_after_s, POLL_S))
            continue
        sources.hear(messages)
        watch = watch.read(messages, sources.clock())
    return ControllerOutcome(Result.SUPERSEDED, "another change has begun")
