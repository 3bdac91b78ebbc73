"""A process of a demonstration that is started again when it has died."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.adapters.system.subprocesses import ChildProcess
from kgs_core.demo.child_endings import Failures, death, end_in_order, last_words

RESTART_EVERY_S = 5.0


class SupervisedProcess:
    """Each life has a session of its own: what one has started may outlive it, and is left alone until `kill`.

    Attributes:
        failure: why it is not started again, in one line; empty while it is.
    """

    def __init__(
        self, name: str, command: Sequence[str], log_file: Path, environ: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        """Starts nothing yet."""
        self.name = name
        self._command = tuple(command)
        self._log_file = log_file
        self._environ = environ
        self._say = say
        self._lives: list[ChildProcess] = []
        self._started_s = 0.0
        self._due_s: float | None = None
        self._failures = Failures()
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
            if self._failures.count(last.exit_code, now - self._started_s):
                self.failure = last_words(last)
                self._say(f"{death(last)} fails each time: it is not started again")
                return
            self._due_s = max(now, self._started_s + RESTART_EVERY_S)
            self._say(f"{death(last)} is started again; meanwhile the consumers read on what they own")
        if now >= self._due_s:
            self.start()

    def end(self, timeout_s: float, interrupt: StopFlag) -> list[str]:
        """Ends it in order: see `end_in_order`."""
        return end_in_order(self._lives[-1], timeout_s, interrupt) if self._lives else []

    def leave(self, timeout_s: float) -> None:
        """Ends it where nothing depends on how: asked first, killed after `timeout_s` seconds."""
        if self._lives:
            self._lives[-1].end(timeout_s)

    def kill(self) -> None:
        """Ends all of its lives, with everything that they have started, at once."""
        for life in self._lives:
            life.kill()
