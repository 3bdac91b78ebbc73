"""Table of `bench packing`: quality, then time and memory."""

from collections.abc import Sequence

from rich.table import Table

from bench.packing_run import ScaleResult, growth
from kgs_core.cli.terminal import output_console, plain_table

_WIDTH_IN_FILE = 140
_UNKNOWN = "-"
_QUALITY = ("over bound", "CBS", "E[R]", "mean latency s", "p99 s", "delayed")
_COST = ("least ms", "median ms", "first ms", "growth", "bytes")


def by_algorithm(results: Sequence[ScaleResult]) -> dict[str, list[ScaleResult]]:
    """Name -> its results, in order of size."""
    found: dict[str, list[ScaleResult]] = {}
    for one in results:
        found.setdefault(one.algorithm, []).append(one)
    return found


def print_results(results: Sequence[ScaleResult]) -> None:
    """Print to standard output."""
    quality, cost = _table(_QUALITY), _table(_COST)
    for one in results:
        head = f"{one.partitions:,}", one.algorithm
        quality.add_row(*head, *_quality(one))
        cost.add_row(*head, *_cost(one, by_algorithm(results)[one.algorithm]))
    output_console(_WIDTH_IN_FILE).print(quality, "", cost, sep="\n")


def _table(columns: Sequence[str]) -> Table:
    return plain_table("partitions", "algorithm", *columns, left=("algorithm",), no_wrap=True)


def _quality(one: ScaleResult) -> tuple[str, ...]:
    late = one.latency
    return (
        f"{one.excess:.2%}",
        _UNKNOWN if one.cbs is None else f"{one.cbs:.4f}",
        f"{one.rscore:,.2f}",
        _UNKNOWN if late.mean_s is None else f"{late.mean_s:.3f}",
        _UNKNOWN if late.p99_s is None else f"{late.p99_s:.2f}",
        _UNKNOWN if late.delayed_share is None else f"{late.delayed_share:.2%}",
    )


def _cost(one: ScaleResult, same: Sequence[ScaleResult]) -> tuple[str, ...]:
    """`same`: of the same algorithm at every size."""
    smaller = [other for other in same if other.partitions < one.partitions]
    grown = growth([smaller[-1], one]) if smaller else None
    return (
        f"{min(one.times_s) * 1e3:,.2f}",
        f"{one.median_s * 1e3:,.2f}",
        f"{one.first_call_s * 1e3:,.0f}",
        "" if grown is None else f"{grown:.2f}",
        f"{one.memory_bytes:,.0f}",
    )
