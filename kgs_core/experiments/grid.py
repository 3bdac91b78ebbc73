"""The runs of a grid of experiments, each with random numbers of its own, one after the other in this process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.replay import Conditions, replay, strategy_of
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import StreamSpec, Workload

Progress = Callable[[int, int], None]
"""Is told how many experiment runs are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """One algorithm or baseline on one load.

    Attributes:
        load: what to generate, or the key of a recorded load.
        order: 0, or the number of a shuffled order, of a baseline that heeds the order.
    """

    name: str
    load: StreamSpec | str
    order: int = 0

    @property
    def key(self) -> str:
        """What all random numbers of the experiment run follow from, and no other experiment run has."""
        load = self.load if isinstance(self.load, str) else self.load.key
        return f"{load} {self.name}" + (f" order {self.order}" if self.order else "")


@dataclass(frozen=True, slots=True)
class Grid:
    """Experiment runs and what they have in common. Picklable."""

    runs: tuple[ExperimentRun, ...]
    conditions: Conditions
    recorded: Mapping[str, Workload] = field(default_factory=dict)


def carry_out(grid: Grid, run: ExperimentRun) -> Replayed:
    """Replay one experiment run: the same to the bit in whichever process and after whatever else."""
    workload = generated(run.load) if isinstance(run.load, StreamSpec) else grid.recorded[run.load]
    random = Random(run.key)  # noqa: S311 - an experiment, no secret
    strategy = strategy_of(run.name, workload, grid.conditions, random, shuffled=run.order > 0)
    steps = list(replay(workload, strategy, grid.conditions))
    return Replayed(run.name, workload.key, workload.spec, steps, run.order)


def run_here(grid: Grid, progress: Progress) -> list[Replayed]:
    """All experiment runs, in their order."""
    found = []
    for done, run in enumerate(grid.runs):
        progress(done, len(grid.runs))
        found.append(carry_out(grid, run))
    progress(len(grid.runs), len(grid.runs))
    return found


@lru_cache(maxsize=2)
def generated(spec: StreamSpec) -> Workload:
    """The stream of `spec`, the same whoever asks."""
    return generate(spec, Random(spec.key))  # noqa: S311 - an experiment, no secret
