"""What experiments are made with: where results are kept, and on what cells run."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from kgs_dagster.settings import ExperimentSettings

if TYPE_CHECKING:
    from kgs_core.adapters.experiment_cells import Cell, Grid
    from kgs_core.adapters.experiment_folder import ExperimentFolder
    from kgs_core.experiments.comparison import Replayed
    from kgs_core.experiments.replay import Conditions
    from kgs_core.experiments.workload import Workload

LABORATORY = "kgs_laboratory"
"""Name of the resource."""
POOL = "kgs_experiments"
"""Of runs that compute: the instance says how many of them go at a time."""
Progress = Callable[[int, int], None]


class Laboratory(dg.ConfigurableResource[None]):
    """Settings of an experiment; all of them can be given for one run, too."""

    folder: str = Field(default="", description="Results. Empty: `experiments` in the storage of Dagster's instance.")
    spark_master: str = Field(
        default="",
        description="Where cells run as a Spark job, e.g. local[*]. Empty: in this run, one after the other.",
    )
    latency: bool = Field(
        default=True, description="Also how late data is read. Without it a replay takes half the time."
    )

    def open(self, instance: dg.DagsterInstance) -> "ExperimentFolder":
        """Where results are."""
        from kgs_core.adapters.experiment_folder import ExperimentFolder

        return ExperimentFolder(Path(self.folder or Path(instance.storage_directory()) / "experiments"))

    def load(self, folder: "ExperimentFolder", key: str) -> "tuple[Workload, Conditions]":
        """A load with what holds for its replays: generated, or registered.

        Raises:
            ConfigError: there is none of that name.
        """
        from dataclasses import replace

        from kgs_core.adapters.experiment_cells import generated
        from kgs_core.adapters.experiment_folder import is_generated, stream_of
        from kgs_core.experiments.replay import Conditions

        if is_generated(key):
            return generated(stream_of(key)), Conditions(record_latency=self.latency)
        workload, conditions = folder.recorded(key)
        return workload, replace(conditions, record_latency=self.latency)

    def replays(self, grid: "Grid", progress: Progress) -> "Iterator[tuple[Cell, Replayed]]":
        """The cells in their order, each as soon as it is there.

        Raises:
            PermanentError: Spark does not start, or fails.
        """
        if self.spark_master:
            yield from zip(grid.cells, self._on_spark(grid, progress), strict=True)
            return
        from kgs_core.adapters.experiment_cells import run_cell

        for cell in grid.cells:
            yield cell, run_cell(grid, cell)

    def _on_spark(self, grid: "Grid", progress: Progress) -> "Sequence[Replayed]":
        from kgs_core.adapters.experiment_grid import run_on_spark
        from kgs_core.config.settings import SparkSettings

        return run_on_spark(grid, SparkSettings(master=self.spark_master), progress)


def laboratory(settings: ExperimentSettings) -> Laboratory:
    """As the code location's environment has it."""
    return Laboratory(folder=str(settings.folder or ""), spark_master=settings.spark_master or "")
