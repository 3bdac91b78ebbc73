"""Resource of experiments: where results are kept, and where loads come from.

Folders come from the environment alone, never from the configuration of a run: whoever may launch a run must not be
able to name a file.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from kgs_core.errors import ConfigError
from kgs_core.lake.files.stored_path import AnyPath
from kgs_dagster.settings import experiment_settings

if TYPE_CHECKING:
    from kgs_core.experiments.store import ExperimentFolder
    from kgs_core.simulation.replay import Conditions
    from kgs_core.simulation.workload import Workload

EXPERIMENT_RESOURCE = "kgs_experiment_resource"
"""Name of the resource."""
POOL = "kgs_experiments"
"""Of runs that compute: the instance says how many of them go at a time."""


class ExperimentResource(dg.ConfigurableResource[None]):
    """Resource of experiments. What can be given for one run is what stands here."""

    latency: bool = Field(
        default=True, description="Also how late data is read. Without it a replay takes half the time."
    )

    def open(self, instance: dg.DagsterInstance) -> "ExperimentFolder":
        """Where results are."""
        from kgs_core.experiments.store import ExperimentFolder

        own = Path(instance.storage_directory()) / "experiments"
        return ExperimentFolder(experiment_settings().folder or own)

    def recording(self, name: str) -> AnyPath:
        """A file of a recorded load, which must lie in the folder for them, also by way of links.

        Raises:
            ConfigError: there is no such folder, or the file is elsewhere, be it by way of a link.
        """
        recordings = experiment_settings().recordings
        if recordings is None:
            raise ConfigError(
                [
                    "file: no folder for recorded loads is set up: name it by KGS_EXPERIMENTS_RECORDINGS in the "
                    "environment of the code location, and put the file there"
                ]
            )
        if "\0" in name:
            raise ConfigError([f"file: {name!r}: not the name of a file: name another"])
        if isinstance(recordings, Path):
            root = recordings.resolve()
            path: AnyPath = (root / name).resolve()
            is_inside = isinstance(path, Path) and path.is_relative_to(root)
        else:
            path, is_inside = recordings / name, not name.startswith("/") and ".." not in name.split("/")
        if not is_inside:
            raise ConfigError([f"file: '{name}' is not in KGS_EXPERIMENTS_RECORDINGS: put it there, and name it"])
        return path

    def load(self, folder: "ExperimentFolder", key: str) -> "tuple[Workload, Conditions]":
        """A load with what holds for its replays; a ConfigError where none is generated or registered by that name."""
        from dataclasses import replace

        from kgs_core.experiments.grid import generated
        from kgs_core.experiments.store import is_generated, stream_of
        from kgs_core.simulation.replay import Conditions

        if is_generated(key):
            return generated(stream_of(key)), Conditions(record_latency=self.latency)
        workload, conditions = folder.recorded(key)
        return workload, replace(conditions, record_latency=self.latency)
