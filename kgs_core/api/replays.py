"""`simulate`, and the loads that it replays: generated, recorded, or measurements in a list."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgs_core.api.packing import PerPartition, by_partition
from kgs_core.errors import ConfigError
from kgs_core.monitor.recorded import parse_measurements
from kgs_core.simulation.workload import DEFAULT_CAPACITY, Start, StreamSpec, Workload

if TYPE_CHECKING:
    import pandas as pd

    from kgs_core.simulation.comparison import Summary
    from kgs_core.simulation.groups import Group


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, shown by a notebook as it is."""

    svg: str

    def save(self, path: str | Path) -> None:
        """Write it as SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class Comparison:
    """Algorithms and baselines replayed over the same load.

    Attributes:
        summaries: one for each name and seed.
    """

    summaries: "tuple[Summary, ...]"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"summaries": [asdict(each) for each in self.summaries]}

    def to_frame(self) -> "pd.DataFrame":
        """A row per algorithm or baseline and load, each figure as the mean over the seeds; the index is `name`."""
        import pandas as pd

        from kgs_core.simulation.groups import FIGURES

        rows = [
            {"name": group.name, "load": group.load, **{name: _mean(group, figure) for name, figure in FIGURES.items()}}
            for group in self._groups()
        ]
        return pd.DataFrame(rows).dropna(axis="columns", how="all").set_index("name")

    def front(self) -> list[str]:
        """Packers that no other one beats in both consumers and Rscore."""
        from kgs_core.simulation.groups import front_of

        return front_of(self._groups())

    def plot(self) -> Picture:
        """The front; with latency also the bill: consumer hours and p99 latency."""
        from kgs_core.simulation.charts import svg
        from kgs_core.simulation.plots import bill_chart, front_chart

        groups = self._groups()
        panels = [front_chart(groups[0].load, groups, self.front())]
        if self.summaries[0].latency is not None:
            panels.append(bill_chart(groups[0].load, groups))
        return Picture(svg(panels))

    def _groups(self) -> "list[Group]":
        from kgs_core.simulation.groups import groups_of

        return groups_of(self.summaries)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(float_format=lambda value: f"{value:.4g}"))


def stream(
    *,
    partitions: int = 200,
    delta: int = 10,
    steps: int = 500,
    topics: int = 2,
    start: Start = "uniform",
    seed: int = 1,
) -> Workload:
    """A load that wanders at random, in per cent of C, as the published experiments have it.

    Args:
        partitions: of all topics together.
        delta: greatest change from one measurement to the next, per cent of C.
        steps: measurements after the first one.
        topics: over which partitions are shared out.
        start: how fast they are at first: drawn, or all at nothing, half a consumer, a whole one.
        seed: the same seed gives the same load.
    """
    from kgs_core.adapters.experiments.grid import generated

    return generated(StreamSpec(delta, start, seed, steps, partitions, topics))


def read_speeds(path: str | Path, *, capacity: float = DEFAULT_CAPACITY) -> Workload:
    """A recorded load: JSON lines or CSV, as `kgs simulate --speeds` reads them.

    Args:
        path: the file.
        capacity: C in the unit of its speeds.

    Raises:
        ConfigError: it cannot be read, or says what cannot be, with line and column.
    """
    from kgs_core.adapters.system.text_file import read_text
    from kgs_core.simulation.recorded import recorded_workload

    return recorded_workload(Path(path).stem, parse_measurements(read_text(Path(path)), str(path)), capacity)


def simulate(  # noqa: PLR0913 - keywords with defaults
    load: Workload | str | Path | Sequence[PerPartition],
    *,
    algorithms: Sequence[str] = ("mwf", "search"),
    baselines: Sequence[str] = (),
    capacity: float | None = None,
    latency: bool = False,
    seeds: int = 1,
    cbs: bool = False,
    interval_s: float = 30.0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Replay a load through algorithms and baselines, each beginning with nothing. Changes nothing anywhere.

    Args:
        load: from `stream` or `read_speeds`, the path of a recorded one, or measurements in order of time.
        algorithms: short names, also with a setting.
        baselines: `kafka:K` (K consumers, round robin) and `keda` (scaled by lag).
        capacity: C in the unit of the load's speeds, where it is not one that knows it.
        latency: also how late data is read, by the latency model.
        seeds: so many streams, from the load's own seed on; a generated load only.
        cbs: also replay all published algorithms, which the cardinal bin score compares with.
        interval_s: how long a measurement lasts.
        progress: is told how many replays are done, and how many there are.

    Raises:
        ConfigError: a name, file or load that cannot be.
    """
    from kgs_core.adapters.experiments.grid import Cell, Grid, run_here
    from kgs_core.simulation.comparison import PUBLISHED, summarize
    from kgs_core.simulation.latency import LatencySettings
    from kgs_core.simulation.replay import Conditions, check_name

    workload = _workload(load, capacity)
    names = list(dict.fromkeys([*algorithms, *baselines]))
    for name in names:
        check_name(name)
    loads: list[StreamSpec | str] = [workload.key] if workload.spec is None else _seeded(workload.spec, seeds)
    if workload.spec is None and seeds != 1:
        raise ConfigError([f"seeds {seeds}: a recorded load is what it is: leave it out"])
    hidden = [name for name in PUBLISHED if name not in names] if cbs else []
    bytes_capacity = DEFAULT_CAPACITY if workload.spec is not None else workload.capacity
    conditions = Conditions(bytes_capacity, LatencySettings(interval_s=interval_s), latency)
    cells = tuple(Cell(name, each) for each in loads for name in (*names, *hidden))
    found = run_here(Grid(cells, conditions, {workload.key: workload}), progress or (lambda *_: None))
    return Comparison(tuple(each for each in summarize(found, conditions) if each.name in names))


def _workload(load: Workload | str | Path | Sequence[PerPartition], capacity: float | None) -> Workload:
    if isinstance(load, Workload):
        if capacity not in (None, load.capacity):
            raise ConfigError([f"capacity {capacity:g}: the load has its own, {load.capacity:g}: leave it out"])
        return load
    if isinstance(load, str | Path):
        return read_speeds(load, capacity=capacity or DEFAULT_CAPACITY)
    measurements = [{tp: float(speed) for tp, speed in by_partition(each, "load")} for each in load]
    if not measurements:
        raise ConfigError(["load: has no measurement"])
    for number, speeds in enumerate(measurements):
        for tp, speed in speeds.items():
            if not 0 <= speed < math.inf:
                raise ConfigError([f"load: measurement {number}: {tp}: {speed:g}: must be 0 or greater"])
    return Workload("load", capacity or DEFAULT_CAPACITY, measurements)


def _seeded(spec: StreamSpec, seeds: int) -> list[StreamSpec | str]:
    sized = (spec.steps, spec.partitions, spec.topics)
    return [StreamSpec(spec.delta, spec.start, seed, *sized) for seed in range(spec.seed, spec.seed + seeds)]


def _mean(group: "Group", figure: "Callable[[Summary], float | None]") -> float | None:
    spread = group.spread(figure)
    return spread.mean if spread is not None else None
