"""Endings of a demonstration's children, and what people are told of them."""

import signal
import time

from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.adapters.system.subprocesses import ChildProcess

_POLL_S = 0.1
_LINES_SHOWN = 6
_CHARACTERS_SHOWN = 160
# A child that is told to end before it has put its handler in place ends by the signal itself, with nothing in hand.
_ENDED_IN_ORDER = (0, -signal.SIGTERM)
_MAX_FAILURES = 3
_YOUNG_S = 60.0


def end_in_order(child: ChildProcess, timeout_s: float, interrupt: StopFlag) -> list[str]:
    """Asks it to end; what still runs of it after `timeout_s`, or when `interrupt` is set, is killed.

    Returns:
        What did not go as it should.
    """
    if child.pid is None:
        child.kill()
        return []
    child.terminate()
    deadline = time.monotonic() + timeout_s
    while child.pid is not None and not interrupt.is_set and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    code = child.end(0)
    if code in _ENDED_IN_ORDER:
        return []
    return [f"{child.name} did not end in order ({ending(code)}): see {child.log_file}"]


class Failures:
    """Count of failures of a child by itself, right after its start: at some number one more time is no use.

    One that was killed never counts: people kill children of a demonstration to see them come again.
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def count(self, code: int | None, lived_s: float) -> bool:
        """Take note of a death; whether the child is not to be started again."""
        has_failed = code is not None and code > 0 and lived_s < _YOUNG_S
        self._in_a_row = self._in_a_row + 1 if has_failed else 0
        return self._in_a_row >= _MAX_FAILURES


def last_words(child: ChildProcess) -> str:
    """Why it has ended, in one line: its last one."""
    output = next((line.strip() for line in reversed(child.log_tail(_LINES_SHOWN).splitlines()) if line.strip()), "")
    return f"{child.name} has died ({ending(child.exit_code)}): {output or 'without a word'}"


def death(child: ChildProcess) -> str:
    """How it died, with the end of its log; goes on with what follows from it."""
    output = "\n".join(f"    {line[:_CHARACTERS_SHOWN]}" for line in child.log_tail(_LINES_SHOWN).splitlines())
    return f"{child.name} has died ({ending(child.exit_code)}); its log ends:\n{output}\n{child.name}"


def ending(code: int | None) -> str:
    """An exit code in words."""
    if code is None:
        return "unknown how"
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"
