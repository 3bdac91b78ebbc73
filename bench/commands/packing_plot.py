"""The picture of `bench packing`: time of a step against partitions, and at each size who is on the front."""

from collections.abc import Sequence

from bench.commands.packing_table import by_algorithm
from bench.packing_run import ScaleResult
from kgs_core.simulation.charts import Chart
from kgs_core.simulation.comparison import pareto_front
from kgs_core.simulation.plots import CBS, RSCORE

_MS = 1000


def packing_charts(results: Sequence[ScaleResult]) -> list[Chart]:
    """The least time of a step first, then a front for each size."""
    times = {
        name: [(float(one.partitions), min(one.times_s) * _MS) for one in same]
        for name, same in by_algorithm(results).items()
    }
    sizes = sorted({one.partitions for one in results})
    fronts = [_front([one for one in results if one.partitions == size]) for size in sizes]
    return [Chart("Least time of a step", "partitions", "time, ms", lines=times, scale="log"), *fronts]


def _front(results: Sequence[ScaleResult]) -> Chart:
    """Consumers and mean Rscore of one load; CBS where it is known, else what is above the bound."""
    known = all(one.cbs is not None for one in results)
    dots = {one.algorithm: (one.excess if one.cbs is None else one.cbs, one.rscore) for one in results}
    return Chart(
        f"{results[0].partitions:,} partitions",
        CBS if known else "consumers over the lower bound, a ratio",
        RSCORE,
        dots=dots,
        path=pareto_front(dots),
    )
