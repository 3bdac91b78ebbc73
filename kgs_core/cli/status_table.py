"""The group for people: a line of totals, one row per consumer, what stands still, what a change waits for."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kgs_core.control.overview import ConsumerLine, Overview
from kgs_core.protocol import RunState

UNKNOWN = "?"
MAX_ROWS = 40
"""Of one table; --json has all."""
_BLANK = Text("")
_SHOWN = 5
_SHOWN_IN_TENTHS_S = 100
_NUMBERS = frozenset(
    {
        "partitions",
        "load MB/s",
        "reads MB/s",
        "lag",
        "report",
        "drain",
        "longest",
        "moved",
        "Rscore",
        "consumers",
        "took",
    }
)
_WISHES = {
    RunState.PAUSED: "paused: nobody reads until `kgs resume`",
    RunState.STOPPED: "stopped: all consumers end; `kgs resume` starts them again",
}


def status_table(found: Overview) -> RenderableType:
    """Everything that `kgs status` shows."""
    parts: list[RenderableType] = [headline(found)]
    parts += [Text(f"! {line}", style="red") for line in alarms(found)]
    parts += [Text(line) for line in remarks(found)]
    if found.consumers:
        parts += [_BLANK, _consumers(found.consumers)]
    if found.waiting:
        parts += [_BLANK, _waiting(found)]
    if found.changes:
        parts += [_BLANK, _changes(found)]
    parts += [Text(f"? {problem}", style="yellow") for problem in found.surroundings.problems]
    return Group(*parts)


def headline(found: Overview) -> Text:
    """The group, how far it is, and how much it has not read yet."""
    if found.target is None:
        state = "no target yet"
    elif found.is_converged:
        state = "converged"
    elif found.waiting:
        state = f"changing: {_count(len(found.waiting), 'partition')} not there yet"
    else:
        state = "changing: consumers start or end"
    readers = len(set(found.current.values()))
    parts = (
        f"group {found.group}",
        state,
        f"{_count(len(found.current), 'partition')} on {_count(readers, 'consumer')}",
        f"lag {count(found.lag)} records",
    )
    return Text(" | ".join(parts), style="bold")


def alarms(found: Overview) -> Iterator[str]:
    """What somebody should look at, the worst first."""
    if not found.controller_is_heard:
        age_s = found.surroundings.measured_age_s
        since = "none was published" if age_s is None else f"the last one is {seconds(age_s)} old"
        yield (
            f"the controller is down (of its measurements {since}): consumers go on with what they own; "
            "start `kgs control`"
        )
    for line in found.consumers:
        for tp, reason in sorted(line.stopped.items())[:_SHOWN]:
            yield f"{tp} stands still at consumer {line.consumer}: {reason}"
        if len(line.stopped) > _SHOWN:
            yield f"{len(line.stopped) - _SHOWN} more stand still at consumer {line.consumer} (--json has all)"
    if found.target is not None and found.target.set_aside:
        yield f"set aside, since they keep failing: {', '.join(map(str, found.target.set_aside))}: see their logs"


def remarks(found: Overview) -> Iterator[str]:
    """What people have asked for, and why the target is as it is."""
    if found.wish is not None and found.wish.state in _WISHES:
        yield f"{_WISHES[found.wish.state]} (by {found.wish.by}, {_clock(found.wish.time_ms)})"
    if found.wanted is not None and found.outdated:
        yield (
            f"being replaced for version {found.wanted.version}, configuration {found.wanted.config_hash[:8]}: "
            f"consumers {', '.join(map(str, found.outdated))}"
        )
    if found.target is not None:
        target = found.target
        yield f"target: {target.algorithm}, Rscore {target.rscore:.3f}, {_clock(target.time_ms)}: {target.reason}"


def count(number: int | None) -> str:
    """A number of things, with separators; `?` when it is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def megabytes(number: float | None) -> str:
    """Bytes as MB (10^6 bytes) to three places; `?` when they are not known."""
    return UNKNOWN if number is None else f"{number / 1e6:.3f}"


def seconds(number: float | None) -> str:
    """A time in seconds, `?` when it is not known."""
    if number is None:
        return UNKNOWN
    return f"{number:.1f} s" if number < _SHOWN_IN_TENTHS_S else f"{number:,.0f} s"


def _consumers(lines: Sequence[ConsumerLine]) -> Table:
    table = _table(
        "consumer", "incarnation", "partitions", "load MB/s", "reads MB/s", "lag", "report", "drain", "longest", "state"
    )
    for line in lines[:MAX_ROWS]:
        table.add_row(
            str(line.consumer),
            (line.incarnation or "")[:8],
            "" if line.incarnation is None else f"{len(line.partitions):,}",
            "" if line.incarnation is None else megabytes(line.load),
            "" if line.incarnation is None else megabytes(line.bytes_per_s),
            "" if line.incarnation is None else count(line.lag),
            "" if line.report_age_s is None else f"{seconds(line.report_age_s)} ago",
            "" if line.last_drain_s is None else seconds(line.last_drain_s),
            "" if line.max_drain_s is None else seconds(line.max_drain_s),
            Text(line.state, style="yellow" if line.needs_attention else ""),
        )
    return _with_rest(table, len(lines))


def _waiting(found: Overview) -> Table:
    table = _table("not there yet", "now", "to", "waits for")
    current, target = found.current, found.target.assignment if found.target is not None else {}
    for tp, why in sorted(found.waiting.items())[:MAX_ROWS]:
        owners = (str(current.get(tp, "nobody")), str(target.get(tp, "nobody")))
        table.add_row(Text(str(tp)), *owners, Text(why))
    return _with_rest(table, len(found.waiting))


def _changes(found: Overview) -> Table:
    table = _table("change", "moved", "Rscore", "consumers", "took", "reason")
    last = len(found.changes) - 1
    for number, change in reversed(list(enumerate(found.changes))):
        table.add_row(
            _clock(change.time_ms),
            f"{change.moved:,}",
            f"{change.rscore:.3f}",
            f"{change.consumers:,}",
            seconds(change.duration_s) if number < last or change.duration_s is not None else _progress(found),
            Text(change.reason),
        )
    return table


def _progress(found: Overview) -> str:
    """How it is with the last change; how long it took is written down with the next one."""
    return "done" if found.is_converged else "running"


def _clock(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left", overflow="fold")
    return table


def _with_rest(table: Table, rows: int) -> Table:
    if rows > MAX_ROWS:
        table.caption = f"{rows - MAX_ROWS:,} more (--json has all)"
        table.caption_justify = "left"
    return table


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
