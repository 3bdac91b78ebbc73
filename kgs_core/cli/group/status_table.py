"""The group for people: a line of totals, one row per consumer, what stands still, what a change waits for."""

import time
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from kgs_core.cli.fitting_table import Column, FittingTable
from kgs_core.group.controller.plan_request import FORCED_ONLY
from kgs_core.group.protocol import RunState
from kgs_core.group.view.plain_text import UNKNOWN, clock_text, count, counted, megabytes, printable, ranges
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.bad_shares import share_text
from kgs_core.reporting.capacity import capacity_line, capacity_sentences
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus

MAX_ROWS = 40
"""Of one table; --json has all."""
_BLANK = Text("")
_SHOWN = 5
_BEFORE_ZONES = 5
_SHOWN_IN_TENTHS_S = 100
_CONSUMERS = (
    Column("consumer"),
    Column("incarnation", spared=4),
    Column("partitions", is_number=True),
    Column("load MB/s", is_number=True),
    Column("reads MB/s", is_number=True, spared=2),
    Column("lag", is_number=True),
    Column("report", is_number=True, spared=1),
    Column("drain", is_number=True, spared=3),
    Column("longest", is_number=True, spared=3),
    Column("state", is_text=True),
)
_OF_CLASS = (Column("class"), Column("capacity", is_number=True))
"""Beside the number of a consumer, where consumers are of several classes."""
_ZONES = (Column("zone", spared=2), Column("across zones", is_number=True, spared=2))
_WAITING = (Column("pending", is_text=True), Column("now"), Column("to"), Column("waits for", is_text=True))
_CHANGES = (
    Column("change"),
    Column("moved", is_number=True),
    Column("Rscore", is_number=True),
    Column("consumers", is_number=True, spared=1),
    Column("took", is_number=True),
    Column("iterations", is_number=True, spared=2),
    Column("reason", is_text=True),
)
_TIMES = tuple(Column(name, is_number=True, spared=3) for name in ("seen", "decided", "started", "handed over"))
_DESIRED_STATES = {
    RunState.PAUSED: "paused: no consumer reads until `kgs resume`",
    RunState.STOPPED: "stopped: all consumers end; `kgs resume` starts them again",
}


def status_table(found: GroupStatus) -> RenderableType:
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
    parts += [Text(f"? {printable(problem)}", style="yellow") for problem in found.facts.problems]
    return Group(*parts)


def headline(found: GroupStatus) -> Text:
    """The group, how far it is, what stands still, and how much it has not read yet."""
    if found.target is None:
        state = "no target yet"
    elif found.idle is not None:
        what = "records to read" if found.lag or found.known_lag else "nothing to read"
        state = f"idle since {clock_text(found.idle.since_ms)}: {what}"
    elif found.is_converged:
        state = "converged"
    elif found.waiting:
        state = f"changing: waiting for {counted(len(found.waiting), 'partition')}"
    else:
        state = "changing: consumers start or end"
    if still := found.stopped:
        state += f", but {len(still):,} of {counted(len(found.current), 'partition')} stopped"
    parts = [
        f"group {found.group}",
        state,
        f"{counted(len(found.current), 'partition')} on {counted(found.readers, 'consumer')}",
        f"{counted(found.topics_consumed, 'topic')} consumed",
        _lag(found),
    ]
    if found.bad_shares:
        parts.append(f"too many bad records in {counted(len(found.bad_shares), 'topic')}")
    return Text(" | ".join(parts), style="bold")


def _lag(found: GroupStatus) -> str:
    if found.lag is not None or found.known_lag is None:
        return f"lag {count(found.lag)} records"
    return f"lag {count(found.known_lag)}, of {counted(found.lag_unknown_partitions, 'partition')} not known"


def alarms(found: GroupStatus) -> Iterator[str]:
    """What somebody should look at, the worst first."""
    if not found.controller_is_heard:
        age_s = found.facts.measured_age_s
        since = "no measurement was published" if age_s is None else f"the last measurement is {seconds(age_s)} old"
        yield (
            f"the controller is down, or cannot measure ({since}): consumers keep reading what "
            "they own; see its log, or start `kgs control`"
        )
    yield from _standing(found)
    for topic, share in found.bad_shares.items():
        yield (
            f"topic {topic}: {share_text(share)} of its newest records are dead letters: "
            "column `error` of its dead-letter table says why; fix the rule or the producer"
        )
    yield from _behind(found)
    if found.capacity.falls_short:
        yield from capacity_sentences(found.capacity, round(time.time() * 1000))
    if found.replacement is not None and found.replacement.refused:
        yield f"{found.replacement}; all consumers keep reading"
    for consumer, why in found.failures.items():
        yield f"consumer {consumer} has ended by an error: {printable(why)}"
    if found.target is not None and found.target.quarantined:
        yield f"quarantined, since they keep failing: {', '.join(map(str, found.target.quarantined))}: see their logs"


def _behind(found: GroupStatus) -> Iterator[str]:
    for table, (lag_s, most_s) in found.facts.newest_rows.items():
        if lag_s is not None and lag_s > most_s:
            yield (
                f"table {printable(table)}: its newest rows are {seconds(lag_s)} behind, more than max_lag_s "
                f"({seconds(most_s)}): see the log of the consumer that reads partition 0 of its topic"
            )


def _standing(found: GroupStatus) -> Iterator[str]:
    """Each reason once, with all that stands still for it."""
    still: dict[str, dict[TopicPartition, ConsumerId]] = {}
    for tp, reason in found.stopped.items():
        still.setdefault(printable(reason), {})[tp] = found.current[tp]
    reasons = sorted(still.items(), key=lambda item: (-len(item[1]), min(item[1])))
    for reason, where in reasons[:_SHOWN]:
        numbers = sorted(set(where.values()))
        who = f"{'consumer' if len(numbers) == 1 else 'consumers'} {', '.join(map(str, numbers))}"
        yield f"{ranges(where)} {'is' if len(where) == 1 else 'are'} stopped at {who}: {reason}"
    more = sum(len(where) for _, where in reasons[_SHOWN:])
    if more:
        yield f"{counted(more, 'more partition')} for other reasons (--json has all)"


def remarks(found: GroupStatus) -> Iterator[str]:
    """What people have asked for, and why the target is as it is."""
    desired = found.desired_state
    if desired is not None and desired.state in _DESIRED_STATES:
        yield f"{_DESIRED_STATES[desired.state]} (by {printable(desired.by)}, {clock_text(desired.time_ms)})"
    if found.wanted is not None and found.outdated:
        yield (
            f"being replaced for version {printable(found.wanted.version)}, configuration "
            f"{printable(found.wanted.config_hash[:8])}: consumers {', '.join(map(str, found.outdated))}"
        )
    yield capacity_line(found.capacity)
    if not found.capacity.falls_short:
        yield from capacity_sentences(found.capacity, round(time.time() * 1000))
    if found.replacement is not None and not found.replacement.refused:
        yield str(found.replacement)
    if found.facts.newest_rows:
        behind = (f"{printable(table)} {seconds(lag)} behind" for table, (lag, _) in found.facts.newest_rows.items())
        yield f"newest rows: {', '.join(behind)}"
    yield from _held_back(found)
    yield from _complete(found)
    if found.target is not None:
        target = found.target
        when, why = clock_text(target.time_ms), printable(target.reason)
        yield f"target: {target.algorithm}, Rscore {target.rscore:.3f}, {when}: {why}"


def _held_back(found: GroupStatus) -> Iterator[str]:
    if found.request is not None:
        yield f"`kgs plan --apply` of {printable(found.request.by)} is not carried out yet"
    elif found.forced_only:
        yield FORCED_ONLY
    if found.quiet_until:
        yield f"until {found.quiet_until} only forced moves are made (packing.apply)"
    if found.rscore_left is not None:
        yield f"unforced moves may still take {found.rscore_left:.3f} Rscore within this hour"


def _complete(found: GroupStatus) -> Iterator[str]:
    """Up to which time tables are complete, the earliest first."""
    tables = found.facts.complete
    times = sorted((each.until_ms, each.table) for each in tables if each.until_ms is not None)
    words = [f"{table} until {clock_text(ms)}" for ms, table in times[:_SHOWN]]
    if len(times) > _SHOWN:
        words.append(f"{len(times) - _SHOWN:,} more until later")
    if unknown := len(tables) - len(times):
        words.append(f"not known of {counted(unknown, 'table')} (`kgs complete` says why)")
    if words:
        yield f"complete: {', '.join(words)}"


def seconds(number: float | None) -> str:
    """A time in seconds, `?` when it is not known."""
    if number is None:
        return UNKNOWN
    return f"{number:.1f} s" if number < _SHOWN_IN_TENTHS_S else f"{number:,.0f} s"


def _consumers(lines: Sequence[ConsumerRow]) -> FittingTable:
    """A row each; with classes and zones where there are any."""
    columns: tuple[Column, ...] = _CONSUMERS
    rows = [_consumer(line) for line in lines]

    def add(place: int, more: tuple[Column, ...], cells: Sequence[Sequence[str | Text]]) -> None:
        nonlocal columns, rows
        columns = (*columns[:place], *more, *columns[place:])
        rows = [[*row[:place], *each, *row[place:]] for row, each in zip(rows, cells, strict=True)]

    if any(line.zone for line in lines):
        add(_BEFORE_ZONES, _ZONES, [_zone(line) for line in lines])
    if any(line.consumer_class for line in lines):
        add(1, _OF_CLASS, [[line.consumer_class, megabytes(line.capacity)] for line in lines])
    return _table(columns, rows)


def _zone(line: ConsumerRow) -> list[str | Text]:
    """Its zone, and how much of what it has read came from others."""
    if line.incarnation is None:
        return ["", ""]
    same, across = line.same_zone_bytes or 0, line.cross_zone_bytes or 0
    share = f"{across / (same + across):.0%}" if same + across else UNKNOWN
    return [UNKNOWN if line.zone is None else printable(line.zone), share]


def _consumer(line: ConsumerRow) -> list[str | Text]:
    state = Text(line.state, style="yellow" if line.needs_attention else "")
    if line.incarnation is None:
        return [str(line.consumer), *[""] * (len(_CONSUMERS) - 2), state]
    return [
        str(line.consumer),
        line.incarnation[:8],
        f"{len(line.partitions):,}",
        megabytes(line.load),
        megabytes(line.bytes_per_s),
        count(line.lag) if line.lag is not None or line.known_lag is None else f"{count(line.known_lag)}+{UNKNOWN}",
        "" if line.report_age_s is None else f"{seconds(line.report_age_s)} ago",
        "" if line.last_drain_s is None else seconds(line.last_drain_s),
        "" if line.max_drain_s is None else seconds(line.max_drain_s),
        state,
    ]


def _waiting(found: GroupStatus) -> FittingTable:
    """Partitions that wait for the same are one row."""
    current, target = found.current, found.target.assignment if found.target is not None else {}
    together: dict[tuple[str, str, str], list[TopicPartition]] = {}
    for tp, why in sorted(found.waiting.items()):
        key = str(current.get(tp, "nobody")), str(target.get(tp, "nobody")), printable(why)
        together.setdefault(key, []).append(tp)
    return _table(_WAITING, [[Text(ranges(tps)), now, to, Text(why)] for (now, to, why), tps in together.items()])


def _changes(found: GroupStatus) -> FittingTable:
    last, took = len(found.changes) - 1, 5
    # How long a change took is written down with the next one
    progress = "done" if found.is_converged else "running"
    are_known = any(value is not None for change in found.changes for _, value in change.times)
    columns = (*_CHANGES[:took], *_TIMES, *_CHANGES[took:]) if are_known else _CHANGES
    rows: list[Sequence[str | Text]] = [
        [
            clock_text(change.time_ms),
            f"{change.moved:,}",
            f"{change.rscore:.3f}",
            f"{change.consumers:,}",
            seconds(change.duration_s) if number < last or change.duration_s is not None else progress,
            *(UNKNOWN if value is None else seconds(value) for _, value in change.times if are_known),
            UNKNOWN if change.iterations is None else f"{change.iterations:,.1f}",
            Text(printable(change.reason)),
        ]
        for number, change in reversed(list(enumerate(found.changes)))
    ]
    return _table(columns, rows)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> FittingTable:
    more = len(rows) - MAX_ROWS
    return FittingTable(columns, rows[:MAX_ROWS], f"{more:,} more (--json has all)" if more > 0 else "")
