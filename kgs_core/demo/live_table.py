"""The live table: what a snapshot looks like, on a terminal and in a log alike."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kgs_core.adapters.lake_view import LakeSnapshot
from kgs_core.demo.snapshot import ConsumerRow, DemoSnapshot

UNKNOWN = "?"
_PROBLEMS_SHOWN = 2


def live_table(snapshot: DemoSnapshot) -> RenderableType:
    """A line of totals, one row per consumer, one row per table."""
    problems = [Text(f"? {problem}", style="yellow") for problem in snapshot.lake.problems[:_PROBLEMS_SHOWN]]
    return Group(headline(snapshot), _consumers(snapshot.consumers), _tables(snapshot.lake), *problems)


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


def _consumers(rows: tuple[ConsumerRow, ...]) -> Table:
    table = _table("consumer", "pid", "partitions", "MB/s", "lag", "latency s", "state")
    for row in rows:
        table.add_row(
            str(row.number),
            UNKNOWN if row.pid is None else str(row.pid),
            count(row.partitions),
            megabytes(row.bytes_per_s),
            count(row.lag),
            UNKNOWN if row.latency_s is None else f"{row.latency_s:.1f}",
            row.state,
        )
    return table


def _tables(lake: LakeSnapshot) -> Table:
    table = _table("lake table", "rows", "MB", "files", "lag", "")
    for view in lake.tables:
        letters = f"{view.letters:,} dead letters" if view.letters else ""
        table.add_row(
            view.table, count(view.rows), megabytes(view.size_bytes), count(view.files), count(view.lag), letters
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, min_width=16)
    for name in others:
        table.add_column(name, justify="left" if name in ("state", "") else "right", no_wrap=True)
    return table
