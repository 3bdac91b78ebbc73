"""Process of a demonstration that is started again when it has died, and how children end."""

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kgs_core.system.shutdown import StopFlag
from kgs_core.system.subprocesses import ChildProcess

RESTART_EVERY_S = 5.0
_POLL_S = 0.1
_LINES_SHOWN = 6
_CHARACTERS_SHOWN = 160
# A child that is asked to end before it has put its handler in place ends by the signal itself, with nothing in hand.
_ENDED_IN_ORDER = (0, -signal.SIGTERM)
_MAX_FAILURES = 3
_YOUNG_S = 60.0


class SupervisedProcess:
    """Process that is started again. Each life has its own session: what it started may outlive it, until `kill`.

    Attributes:
        failure: why it is not started again, in one line; empty while it is.
    """

    def __init__(
        self, name: str, command: Sequence[str], log_file: Path, environ: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self.name = name
        self._command = tuple(command)
        self._log_file = log_file
        self._environ = environ
        self._say = say
        self._lives: list[ChildProcess] = []
        self._started_s = 0.0
        self._due_s: float | None = None
        self._failures_in_a_row = 0
        self.failure = ""

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return self._lives[-1].pid if self._lives else None

    @property
    def has_begun(self) -> bool:
        """Whether it was ever started."""
        return bool(self._lives)

    @property
    def trouble(self) -> str:
        """That it is dead, in a few words; empty while it runs, and before it was started."""
        if self._due_s is None:
            return ""
        return f"{self.name} dead, again in {max(0.0, self._due_s - time.monotonic()):.0f} s"

    def start(self) -> None:
        """Starts it once more."""
        self._due_s = None
        self._started_s = time.monotonic()
        life = ChildProcess(self.name, self._command, self._log_file, self._environ)
        self._lives.append(life)
        life.start()

    def look_after(self) -> None:
        """Starts it again when it has died. To be called every second or so, once it was started."""
        if self.pid is not None or not self._lives or self.failure:
            return
        now, last = time.monotonic(), self._lives[-1]
        if self._due_s is None:
            if why := self.why_no_more(last.exit_code, now - self._started_s):
                self.failure = last_words(last)
                self._say(f"{death(last)} is not started again: {why}")
                return
            self._due_s = max(now, self._started_s + RESTART_EVERY_S)
            self._say(f"{death(last)} is started again; meanwhile consumers keep reading what they own")
        if now >= self._due_s:
            self.start()

    def why_no_more(self, code: int | None, lived_s: float) -> str:
        """Takes note of a death; why another start is of no use, empty: it may be.

        One that was killed never counts: people kill children of a demonstration to see them come again.
        """
        has_failed = code is not None and code > 0 and lived_s < _YOUNG_S
        self._failures_in_a_row = self._failures_in_a_row + 1 if has_failed else 0
        return "it fails each time" if self._failures_in_a_row >= _MAX_FAILURES else ""

    def end(self, timeout_s: float, interrupt: StopFlag) -> list[str]:
        """Ends it in order: see `end_in_order`."""
        return end_in_order(self._lives[-1], timeout_s, interrupt) if self._lives else []

    def kill(self) -> None:
        """Ends all of its lives, with everything that they have started, at once."""
        for life in self._lives:
            life.kill()


def end_in_order(child: ChildProcess, timeout_s: float, interrupt: StopFlag) -> list[str]:
    """Asks it to end; kills what still runs after `timeout_s` or when `interrupt` is set. Returns what went wrong."""
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
