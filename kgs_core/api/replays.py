"""`simulate`, and the loads that it replays: generated, recorded, or measurements in a list."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kgs_core.api.values import PerPartition, speeds_by_partition
from kgs_core.errors import ConfigError
from kgs_core.extras import require
from kgs_core.monitor.speeds.recorded import parse_measurements
from kgs_core.simulation.workload import DEFAULT_CAPACITY, Start, StreamSpec, Workload

if TYPE_CHECKING:
    import pandas as pd

    from kgs_core.experiments.grid import Grid
    from kgs_core.simulation.charts import Chart, Format
    from kgs_core.simulation.comparison import Replayed, Summary
    from kgs_core.simulation.groups import SeedGroup
    from kgs_core.simulation.replay import Conditions


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, shown by a notebook as it is.

    Attributes:
        charts: what it shows, a panel each.
    """

    charts: "tuple[Chart, ...]" = field(repr=False)

    @property
    def svg(self) -> str:
        """The drawing as an SVG element."""
        from kgs_core.simulation.charts import svg

        return svg(self.charts)

    def save(self, path: str | Path) -> None:
        """Write it as SVG or PNG.

        Raises:
            ConfigError: the path ends in neither .svg nor .png, or cannot be written.
        """
        from kgs_core.simulation.charts import picture
        from kgs_core.system.files import write_whole

        write_whole(Path(path), picture(self.charts, _kind(Path(path))))

    def _repr_svg_(self) -> str:
        return self.svg


def _kind(path: Path, option: str = "") -> "Format":
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError([f"{option}{path}: name a file that ends in .svg or .png"])
    return "png" if kind == ".png" else "svg"


def check_plot(option: str, path: Path) -> None:
    """Refuse, before anything is computed, what no `Picture` could be saved as here."""
    from kgs_core.system.files import check_writable

    _kind(path, f"{option}: ")
    require("plots", option)
    check_writable(option, path)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Algorithms and baselines replayed over the same loads.

    Attributes:
        summaries: one for each name and load; those of shuffled orders come last.
        conditions: of every replay.
        replays: the same, measurement by measurement, without shuffled orders.
    """

    summaries: "tuple[Summary, ...]"
    conditions: "Conditions"
    replays: "tuple[Replayed, ...]" = field(repr=False)

    @property
    def groups(self) -> "list[SeedGroup]":
        """Replays that differ in their seed only, by load, then by name."""
        from kgs_core.simulation.groups import groups_of

        return groups_of(self.summaries)

    @property
    def loads(self) -> list[str]:
        """What loads there are, seeds aside."""
        return list(dict.fromkeys(group.load for group in self.groups))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, as `kgs simulate --json` prints them."""
        from kgs_core.simulation.comparison_json import comparison_values

        return comparison_values(self.conditions, self.summaries, self.groups)

    def to_frame(self) -> "pd.DataFrame":
        """A row per algorithm or baseline and load, each figure as the mean over the seeds; the index is `name`."""
        import pandas as pd

        from kgs_core.simulation.groups import FIGURES

        rows = [
            {"name": group.name, "load": group.load, **{name: _mean(group, figure) for name, figure in FIGURES.items()}}
            for group in self.groups
        ]
        return pd.DataFrame(rows).dropna(axis="columns", how="all").set_index("name")

    def front(self, load: str | None = None) -> list[str]:
        """Packers that no other one on the same load (None: the first) beats in both consumers and Rscore."""
        from kgs_core.simulation.groups import front_of

        groups = self.groups
        return front_of(group for group in groups if group.load == (load or groups[0].load))

    def plot(self) -> Picture:
        """The picture of `kgs simulate --plot`: fronts; with latency also bills; of one load, consumers over time."""
        from kgs_core.simulation.plots import comparison_charts

        return Picture(tuple(comparison_charts(self.groups, self.replays, latency=self.conditions.record_latency)))

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
    from kgs_core.experiments.grid import generated

    return generated(StreamSpec(delta, start, seed, steps, partitions, topics))


def read_speeds(path: str | Path, *, capacity: float = DEFAULT_CAPACITY) -> Workload:
    """A recorded load: JSON lines, as `kgs simulate --speeds` reads them.

    Args:
        path: the file.
        capacity: C in the unit of its speeds.

    Raises:
        ConfigError: it cannot be read, or says what cannot be, with its line.
    """
    from kgs_core.lake.files.stored_path import named_path
    from kgs_core.simulation.recorded import recorded_workload
    from kgs_core.system.files import read_text

    file = named_path(path)
    return recorded_workload(file.stem, parse_measurements(read_text(file), str(path)), capacity)


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
        baselines: ways without a packer, as `kafka:24`; `kgs simulate --help` lists them.
        capacity: C in the unit of the load's speeds, where it is not one that knows it.
        latency: also how late data is read, by the latency model.
        seeds: so many streams, from the load's own seed on; a generated load only.
        cbs: also replay all published algorithms, which the cardinal bin score compares with.
        interval_s: how long a measurement lasts.
        progress: is told how many replays are done, and how many there are.

    Raises:
        ConfigError: a name, file or load that cannot be.
    """
    from kgs_core.experiments.grid import run_here
    from kgs_core.simulation.latency import LatencySettings
    from kgs_core.simulation.replay import Conditions, check_name

    workload = _workload(load, capacity)
    names = list(dict.fromkeys([*algorithms, *baselines]))
    for name in names:
        check_name(name)
    if workload.spec is None and seeds != 1:
        raise ConfigError([f"seeds {seeds}: a recorded load has no seeds: omit it"])
    bytes_capacity = DEFAULT_CAPACITY if workload.spec is not None else workload.capacity
    conditions = Conditions(bytes_capacity, LatencySettings(interval_s=interval_s), latency)
    if workload.spec is None:
        grid = comparison_grid(names, [workload.key], conditions, {workload.key: workload}, cbs=cbs)
    else:
        grid = comparison_grid(names, _seeded(workload.spec, seeds), conditions, cbs=cbs)
    return comparison(names, run_here(grid, progress or (lambda *_: None)), conditions)


def comparison_grid(
    names: Sequence[str],
    loads: "Sequence[StreamSpec | str]",
    conditions: "Conditions",
    recorded: Mapping[str, Workload] = MappingProxyType({}),
    *,
    cbs: bool,
    orders: int = 0,
) -> "Grid":
    """Replays to run for a comparison.

    Args:
        names: algorithms and baselines to show.
        loads: streams, or keys of recorded loads.
        conditions: of every replay.
        recorded: key -> recorded load.
        cbs: also all published algorithms, which the cardinal bin score compares with.
        orders: baselines that deal partitions in an order also with so many shuffled ones.
    """
    from kgs_core.experiments.grid import ExperimentRun, Grid
    from kgs_core.simulation.baselines import find_baseline
    from kgs_core.simulation.comparison import PUBLISHED

    hidden = [name for name in PUBLISHED if name not in names] if cbs else []
    runs = [ExperimentRun(name, load) for load in loads for name in (*names, *hidden)]
    ordered = [name for name in names if (found := find_baseline(name)) and found[0].shuffled]
    runs += [ExperimentRun(name, load, order) for load in loads for name in ordered for order in range(1, orders + 1)]
    return Grid(tuple(runs), conditions, dict(recorded))


def comparison(names: Sequence[str], replays: "Sequence[Replayed]", conditions: "Conditions") -> Comparison:
    """What these replays show of `names`; those of other names count for the cardinal bin score only."""
    from kgs_core.simulation.comparison import summarize

    summaries = [one for one in summarize(replays, conditions) if one.name in names]
    shown = tuple(one for one in replays if one.name in names and not one.order)
    return Comparison(tuple(sorted(summaries, key=lambda one: one.order)), conditions, shown)


def _workload(load: Workload | str | Path | Sequence[PerPartition], capacity: float | None) -> Workload:
    if isinstance(load, Workload):
        if capacity not in (None, load.capacity):
            raise ConfigError([f"capacity {capacity:g}: the load has its own, {load.capacity:g}: leave it out"])
        return load
    if isinstance(load, str | Path):
        return read_speeds(load, capacity=capacity or DEFAULT_CAPACITY)
    measurements = [speeds_by_partition(each, "load") for each in load]
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


def _mean(group: "SeedGroup", figure: "Callable[[Summary], float | None]") -> float | None:
    spread = group.spread(figure)
    return spread.mean if spread is not None else None
