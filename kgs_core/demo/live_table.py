"""The live table: what a snapshot looks like, on a terminal and in a log alike."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kgs_core.adapters.fleet.host_process import HostProcess
from kgs_core.adapters.lake.stats import LakeSnapshot
from kgs_core.demo.history import short_reason
from kgs_core.demo.snapshot import DemoSnapshot, lag_of
from kgs_core.reporting.status import ConsumerRow, GroupStatus

UNKNOWN = "?"
_PROBLEMS_SHOWN = 2


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
        f"produced {count(snapshot.produced_records)} records ({megabytes(snapshot.produced_bytes_per_s)} MB/s)",
        f"in the lake {count(snapshot.lake.rows)} rows",
        f"lag {count(snapshot.lake.lag)}",
    )
    return Text(f"{' | '.join(when)}\n{' | '.join(what)}", style="bold")


def count(number: int | None) -> str:
    """A number of things, with separators; `?` when it is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def megabytes(number: float | None) -> str:
    """Bytes as MB (10^6 bytes) to two places; `?` when they are not known."""
    return UNKNOWN if number is None else f"{number / 1e6:.2f}"


def _decisions(snapshot: DemoSnapshot) -> Iterator[Text]:
    """What controls the group, what it wants, and its last change."""
    group, figures = snapshot.group, snapshot.figures
    if group is None or group.target is None:
        yield Text(f"{snapshot.control} | target {UNKNOWN}")
        return
    readers, spares = len(set(group.target.assignment.values())), len(group.target.spares)
    yield Text(f"{snapshot.control} | target {_consumers_of(readers)} and {spares} spare | {_progress(group)}")
    yield Text(f"{figures.rebalances} rebalances so far, Rscore {figures.rscore:.2f} in all")
    last = next((change for change in reversed(group.changes) if change.moved), None)
    if last is not None:
        at_s = (last.time_ms - snapshot.began_ms) / 1000
        cost = f"{last.moved} partitions moved, Rscore {last.rscore:.2f}, to {_consumers_of(last.consumers)}"
        yield Text(f"last change at {at_s:.0f} s: {cost}\n  {short_reason(last)}", no_wrap=True, overflow="ellipsis")


def _progress(group: GroupStatus) -> str:
    if group.is_converged:
        return "as it shall be"
    return f"{len(group.waiting)} partitions to hand over" if group.waiting else "waiting for consumers"


def _consumers(group: GroupStatus | None, lake: LakeSnapshot) -> Table:
    table = figures_table("consumer", "pid", "partitions", "load", "MB/s", "lag", "report", "state")
    for line in group.consumers if group is not None else ():
        table.add_row(
            str(line.consumer),
            *(_figures(line, lake) if line.process is not None else [UNKNOWN] * 6),
            _state(line),
        )
    return table


def _figures(line: ConsumerRow, lake: LakeSnapshot) -> list[str]:
    """From its pid to the age of its report."""
    process = HostProcess.of(line.process) if line.process else None
    return [
        UNKNOWN if process is None else str(process.pid),
        str(len(line.partitions)),
        megabytes(line.load),
        megabytes(line.bytes_per_s),
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
        table.add_row(
            view.table, count(view.rows), megabytes(view.size_bytes), count(view.files), count(view.lag), dead_letters
        )
    return table


def figures_table(first: str, *others: str) -> Table:
    """Table without lines, still without rows: words, then figures."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, min_width=15)
    for name in others:
        table.add_column(name, justify="left" if name in ("state", "") else "right", no_wrap=True)
    return table


def _consumers_of(number: int) -> str:
    return f"{number} consumer{'' if number == 1 else 's'}"
