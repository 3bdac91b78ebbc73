"""Shows lines and snapshots: a table in place on a terminal, a plain block now and then without one."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from rich.console import Console
from rich.live import Live

from kgs_core.demo.live_table import headline, live_table
from kgs_core.demo.snapshot import DemoSnapshot

ON_TERMINAL_S = 2.0
IN_LOG_S = 5.0
_WIDTH_IN_LOG = 120


class Display:
    """A context manager; snapshots are shown while it is entered, lines at any time."""

    def __init__(self, console: Console, started_s: float) -> None:
        """Times shown count from `started_s`, on `time.monotonic`."""
        self._console = console
        self._started_s = started_s
        self._live: Live | None = None
        self._due_s = float("-inf")

    def say(self, text: str) -> None:
        """One line, with the seconds since the start before it."""
        elapsed = time.monotonic() - self._started_s
        self._console.print(f"{elapsed:6.1f} s  {text}", markup=False, highlight=False, soft_wrap=True)

    def busy(self, text: str) -> AbstractContextManager[object]:
        """Something that moves on a terminal, while there is nothing else to see."""
        return self._console.status(text) if self._console.is_terminal else nullcontext()

    def show(self, snapshot: DemoSnapshot, *, now: bool = False) -> None:
        """The snapshot, if it is time for another one or `now`."""
        if time.monotonic() < self._due_s and not now:
            return
        self._due_s = time.monotonic() + (ON_TERMINAL_S if self._live is not None else IN_LOG_S)
        if self._live is not None:
            self._live.update(live_table(snapshot), refresh=True)
        else:  # a log need not have the empty table several times
            shown = live_table(snapshot) if snapshot.has_rows else headline(snapshot)
            self._console.print(shown, highlight=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="visible")
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def open_console() -> Console:
    """A console on stdout; without a terminal wide enough for the table, whatever the width there."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_IN_LOG, force_terminal=False)
