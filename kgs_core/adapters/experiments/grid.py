"""The cells of a grid of experiments, each with random numbers of its own, run one after the other in this process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.replay import Conditions, replay, strategy_of
from kgs_core.simulation.streams import generate
from kgs_core.simulation.workload import StreamSpec, Workload

Progress = Callable[[int, int], None]
"""Is told how many cells are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Cell:
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
        """What all random numbers of the cell follow from, and no other cell has."""
        load = self.load if isinstance(self.load, str) else self.load.key
        return f"{load} {self.name}" + (f" order {self.order}" if self.order else "")


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells and what they have in common. Picklable.

    Attributes:
        recorded: key -> recorded load.
    """

    cells: tuple[Cell, ...]
    conditions: Conditions
    recorded: Mapping[str, Workload] = field(default_factory=dict)


def run_cell(grid: Grid, cell: Cell) -> Replayed:
    """Replay one cell: the same to the bit in whichever process and after whatever else."""
    workload = generated(cell.load) if isinstance(cell.load, StreamSpec) else grid.recorded[cell.load]
    random = Random(cell.key)  # noqa: S311 - an experiment, no secret
    strategy = strategy_of(cell.name, workload, grid.conditions, random, shuffled=cell.order > 0)
    steps = list(replay(workload, strategy, grid.conditions))
    return Replayed(cell.name, workload.key, workload.spec, steps, cell.order)


def run_here(grid: Grid, progress: Progress) -> list[Replayed]:
    """All cells, in their order."""
    found = []
    for done, cell in enumerate(grid.cells):
        progress(done, len(grid.cells))
        found.append(run_cell(grid, cell))
    progress(len(grid.cells), len(grid.cells))
    return found


@lru_cache(maxsize=2)
def generated(spec: StreamSpec) -> Workload:
    """The stream of `spec`, the same whoever asks."""
    return generate(spec, Random(spec.key))  # noqa: S311 - an experiment, no secret
