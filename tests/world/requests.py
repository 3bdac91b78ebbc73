"""Judges changes that nothing forces by the records alone: what must be asked for is, and a request counts once."""

from collections.abc import Iterator

from kgs_core.group.protocol import DesiredState, Message, Received, Target
from kgs_core.group.view.plain_text import printable
from kgs_core.planning.triggers import Reason


class Requests:
    """Follows the topics record by record."""

    def __init__(self, *, forced_only: bool) -> None:
        self._forced_only = forced_only
        self._asked: set[int | None] = {None}
        self._answered: int | None = None

    def take(self, received: Received[Message]) -> Iterator[str]:
        """What is wrong with one more record, a line each."""
        message = received.message
        if isinstance(message, DesiredState):
            self._asked.add(message.apply_ms)
        elif isinstance(message, Target):
            yield from self._judged(message)
            self._answered = message.applied_ms

    def _judged(self, target: Target) -> Iterator[str]:
        what = f"carried out: {printable(target.reason)}"
        is_answer = target.applied_ms != self._answered
        if is_answer and target.applied_ms not in self._asked:
            yield f"{what}: but nobody has asked, or it was answered before"
        if self._forced_only and target.reason.startswith(Reason.TIMEOUT) and not is_answer:
            yield f"{what}: but nobody has asked"
        if is_answer:
            self._asked -= {target.applied_ms}
