"""A plan for people: totals, loads, moves, what is overloaded, and the comparison."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from kgs_core.cli.terminal import output_console, plain_table, print_table
from kgs_core.group.view.plain_text import UNKNOWN, counted, megabytes, printable
from kgs_core.packing import ALGORITHMS
from kgs_core.planning.group import Group
from kgs_core.planning.group_load import GroupLoad
from kgs_core.planning.learnt_capacity import Capacity
from kgs_core.planning.overload import FastPartition, Overload
from kgs_core.planning.plan import Plan
from kgs_core.reporting.capacity import capacity_line, capacity_sentences
from kgs_core.reporting.group_load import member_name

MAX_ROWS = 40
"""Of one table; --json has all."""
_BAR_WIDTH = 24
_WIDTH_IN_FILE = 120
_UNITS = ((1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


def print_plan(plan: Plan, group: Group, *, capacity: Capacity, left_out: int = 0, is_ours: bool = True) -> None:
    """Print to standard output.

    Args:
        left_out: partitions that somebody reads and the load does not have.
        is_ours: whether kgs.yaml is about this group, and what it says of capacities can be mended there.
    """
    console = output_console(_WIDTH_IN_FILE)
    factor, unit = _unit_of(plan)
    show = _Shown(plan, group, factor, unit)
    console.print(show.headline())
    for line in show.launches():
        console.print(line)
    drift = capacity_sentences(capacity, round(time.time() * 1000)) if is_ours else ()
    for line in (capacity_line(capacity), *drift):
        console.print(line, highlight=False)
    if left_out:
        console.print(
            f"left out: {counted(left_out, 'partition')} of the current assignment without speed", style="yellow"
        )
    print_table(console, show.loads())
    if plan.moves:
        print_table(console, show.moves())
    for overload in plan.overloaded[:MAX_ROWS]:
        console.print(Text(f"! {show.overload(overload)}", style="red"))
    if len(plan.overloaded) > MAX_ROWS:
        console.print(f"! {len(plan.overloaded) - MAX_ROWS:,} more (--json has all)", style="red")
    if plan.alternatives:
        print_table(console, show.comparison())


def print_group(group: GroupLoad, plan: Plan, advice: Sequence[str]) -> None:
    """Print a group that is not kgs's as it is now, and what the plan would change of it."""
    console = output_console(_WIDTH_IN_FILE)
    factor, unit = _unit_of(plan)
    what = f"{counted(len(group.members), 'member')}, {counted(len(group.current), 'partition')} assigned"
    console.print(Text(f"group {printable(group.group)}: {what}", style="bold"))
    table = plain_table(
        "", "member", "partitions", f"written {unit}", f"read {unit}", "behind MB", "load", left=("member",)
    )
    for one in group.members[:MAX_ROWS]:
        figures = [one.written_bytes_per_s, one.read_bytes_per_s]
        shown = [UNKNOWN if each is None else f"{each / factor:,.2f}" for each in figures]
        behind = megabytes(one.behind_bytes, 1)
        load = UNKNOWN if one.written_bytes_per_s is None else f"{one.written_bytes_per_s / plan.capacity:.0%}"
        table.add_row(str(one.consumer), member_name(one), f"{one.partitions:,}", *shown, behind, load)
    if group.members:
        print_table(console, _with_rest(table, len(group.members)))
    for sentence in advice:
        console.print(Text(f"- {sentence}"))
    console.print("\nA balanced assignment:")


def _unit_of(plan: Plan) -> tuple[float, str]:
    return next(entry for entry in _UNITS if plan.capacity >= entry[0])


class _Shown:
    """A plan's parts as renderables, speeds in one unit."""

    def __init__(self, plan: Plan, group: Group, factor: float, unit: str) -> None:
        self._plan = plan
        self._group = group
        self._factor = factor
        self._unit = unit

    def headline(self) -> Text:
        """Algorithm, consumers, Rscore and moves in one line."""
        plan = self._plan
        return Text(
            f"{plan.algorithm}: {counted(plan.consumers, 'consumer')} of {self._speed(plan.capacity)} {self._unit} for "
            f"{counted(len(plan.target), 'partition')}, Rscore {plan.rscore:.3f}, {len(plan.moves):,} to move",
            style="bold",
        )

    def launches(self) -> Iterator[str]:
        """Why this one; which consumers to create and to retire, and which are spares."""
        plan = self._plan
        if plan.choice:
            yield f"chosen: {plan.choice}"
        if plan.held_back:
            yield plan.held_back
        if plan.cross_zone_bytes_per_s is not None:
            yield f"read across zones: {self._speed(plan.cross_zone_bytes_per_s)} {self._unit}"
        for verb, numbers in (("create", plan.create), ("retire", plan.retire), ("spare", plan.spares)):
            if numbers:
                more = f", {len(numbers) - MAX_ROWS:,} more" if len(numbers) > MAX_ROWS else ""
                yield f"{verb}: {', '.join(map(str, numbers[:MAX_ROWS]))}{more}"

    def loads(self) -> Table:
        """One row per consumer, by number."""
        plan = self._plan
        of_class = ("class", "capacity") if plan.classes else ()
        table = plain_table("consumer", *of_class, "partitions", self._unit, "load", "", left=("class", "load", ""))
        counts = Counter(plan.target.values())
        before = Counter(self._group.current.values())
        for consumer, load in list(plan.load.items())[:MAX_ROWS]:
            capacity = plan.capacity_of(consumer)
            above = load > capacity
            state = ["new"] if before and consumer not in before else []
            state += ["above capacity"] if above else []
            filled = round(_BAR_WIDTH * min(load / capacity, 1.0))
            bar = Text("█" * filled + "░" * (_BAR_WIDTH - filled), style="red" if above else "green")
            more = (plan.classes[consumer], self._speed(capacity)) if plan.classes else ()
            table.add_row(str(consumer), *more, f"{counts[consumer]:,}", self._speed(load), bar, ", ".join(state))
        return _with_rest(table, len(plan.load))

    def moves(self) -> Table:
        """One row per partition that changes its consumer, the fastest first."""
        table = plain_table("partition", "from", "to", self._unit, left=("partition",))
        for move in self._plan.moves[:MAX_ROWS]:
            row = (str(move.partition), str(move.source), str(move.destination), self._speed(move.bytes_per_s))
            table.add_row(*row)
        return _with_rest(table, len(self._plan.moves))

    def overload(self, overload: Overload) -> str:
        """What does not fit, and what would cure it, in one line."""
        enough = f"a packing capacity of {self._speed(overload.capacity_bytes_per_s)} {self._unit}"
        at = f"{self._speed(overload.bytes_per_s)} {self._unit}"
        if isinstance(overload, FastPartition):
            what = f"{overload.partition} at {at} is faster than a consumer"
            return f"{what}: give its topic {overload.partitions:,} partitions, or {enough}"
        what = f"consumer {overload.consumer} is given {at}"
        if overload.consumers is None:
            return f"{what}: {enough} would do"
        return f"{what}: max_consumers {overload.consumers:,}, or {enough} would do"

    def comparison(self) -> Table:
        """One row per algorithm, in the order of the registry, and per setting that was weighed."""
        plan = self._plan
        rows = {row.algorithm: row for row in (plan.summary(), *plan.alternatives)}
        settings = [name for name in rows if "@" in name]
        headings = ("algorithm", "consumers", "Rscore", "moved", f"max load {self._unit}", "")
        table = plain_table(*headings, left=("algorithm", ""))
        for name in (*ALGORITHMS, *settings):
            if row := rows.get(name):
                chosen = "this plan" if name == plan.algorithm else ""
                most = self._speed(row.max_load_bytes_per_s)
                table.add_row(name, f"{row.consumers:,}", f"{row.rscore:.3f}", f"{row.moved:,}", most, chosen)
        return table

    def _speed(self, bytes_per_s: float) -> str:
        return f"{bytes_per_s / self._factor:,.2f}"


def _with_rest(table: Table, rows: int) -> Table:
    if rows > MAX_ROWS:
        table.caption = f"{rows - MAX_ROWS:,} more (--json has all)"
        table.caption_justify = "left"
    return table
