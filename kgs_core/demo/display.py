"""Display of lines and snapshots: a table in place on a terminal, a plain block now and then without one."""

import time
from collections.abc import Iterator
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kgs_core.demo.observer import short_name, short_reason
from kgs_core.demo.snapshot import DemoSnapshot, lag_of
from kgs_core.group.view.plain_text import UNKNOWN, count, counted, megabytes
from kgs_core.lake.topics.stats import LakeSnapshot
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus

ON_TERMINAL_S = 2.0
IN_LOG_S = 5.0
_WIDTH_IN_LOG = 120
_PROBLEMS_SHOWN = 2


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


def live_table(snapshot: DemoSnapshot) -> RenderableType:
    """Totals, the group's target and last change, one row per consumer, one row per table."""
    problems = [*snapshot.problems, *snapshot.lake.problems][:_PROBLEMS_SHOWN]
    return Group(
        headline(snapshot),
        *_decisions(snapshot),
        _consumers(snapshot.group, snapshot.lake),
        _tables(snapshot.lake),
        *(Text(f"? {problem}", style="yellow") for problem in problems),
    )


def headline(snapshot: DemoSnapshot) -> Text:
    """Stage, time, simulated time and totals, in two lines."""
    simulated = f"{snapshot.simulated:%Y-%m-%d %H:%M}" if snapshot.simulated is not None else UNKNOWN
    when = (f"{snapshot.elapsed_s:.0f} s", snapshot.stage, f"simulated time {simulated}")
    what = (
        f"produced {count(snapshot.produced_records)} records ({megabytes(snapshot.produced_bytes_per_s, 2)} MB/s)",
        f"in the lake {count(snapshot.lake.rows)} rows",
        f"lag {count(snapshot.lake.lag)}",
    )
    return Text(f"{' | '.join(when)}\n{' | '.join(what)}", style="bold")


def _decisions(snapshot: DemoSnapshot) -> Iterator[Text]:
    """What controls the group, what it wants, and its last change."""
    group, figures = snapshot.group, snapshot.figures
    if group is None or group.target is None:
        yield Text(f"{snapshot.control} | target {UNKNOWN}")
        return
    readers, spares = len(set(group.target.assignment.values())), len(group.target.spares)
    yield Text(f"{snapshot.control} | target {counted(readers, 'consumer')} and {spares} spare | {_progress(group)}")
    yield Text(f"{figures.rebalances} rebalances so far, Rscore {figures.rscore:.2f} in all")
    last = next((change for change in reversed(group.changes) if change.moved), None)
    if last is not None:
        at_s = (last.time_ms - snapshot.began_ms) / 1000
        cost = f"{last.moved} partitions moved, Rscore {last.rscore:.2f}, to {counted(last.consumers, 'consumer')}"
        yield Text(f"last change at {at_s:.0f} s: {cost}\n  {short_reason(last)}", no_wrap=True, overflow="ellipsis")


def _progress(group: GroupStatus) -> str:
    if group.is_converged:
        return "converged"
    return f"{len(group.waiting)} partitions to hand over" if group.waiting else "waiting for consumers"


def _consumers(group: GroupStatus | None, lake: LakeSnapshot) -> Table:
    lines = group.consumers if group is not None else ()
    kinds = {short_name(line.process)[0] for line in lines if line.process is not None}
    kind = "pod" if "pod" in kinds else "pid"
    table = figures_table("consumer", kind, "partitions", "load", "MB/s", "lag", "report", "state")
    for line in lines:
        table.add_row(
            str(line.consumer),
            *(_figures(line, lake) if line.process is not None else [UNKNOWN] * 6),
            _state(line),
        )
    return table


def _figures(line: ConsumerRow, lake: LakeSnapshot) -> list[str]:
    """From its process to the age of its report."""
    return [
        UNKNOWN if line.process is None else short_name(line.process)[1],
        str(len(line.partitions)),
        megabytes(line.load, 2),
        megabytes(line.bytes_per_s, 2),
        count(lag_of(lake, line.partitions)),
        UNKNOWN if line.report_age_s is None else f"{line.report_age_s:.0f} s",
    ]


def _state(line: ConsumerRow) -> str:
    if line.stopped:
        return f"{len(line.stopped)} partitions stopped"
    return line.state if line.incarnation is not None else "on its way"


def _tables(lake: LakeSnapshot) -> Table:
    table = figures_table("lake table", "rows", "MB", "files", "lag", "")
    for view in lake.tables:
        dead_letters = f"{view.dead_letters:,} dead letters" if view.dead_letters else ""
        size = megabytes(view.size_bytes, 2)
        table.add_row(view.table, count(view.rows), size, count(view.files), count(view.lag), dead_letters)
    return table


def figures_table(first: str, *others: str) -> Table:
    """Table without lines, still without rows: words, then figures."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, min_width=15)
    for name in others:
        table.add_column(name, justify="left" if name in ("state", "") else "right", no_wrap=True)
    return table
