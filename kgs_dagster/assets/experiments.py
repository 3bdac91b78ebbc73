"""Experiments as assets: loads, and every algorithm and baseline on every load.

An experiment run's rows follow from its keys alone, so a slice can be run again at any time and gives the same files to
the byte.
"""

import time
import warnings
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

import kgs_core
from kgs_core.errors import ConfigError
from kgs_dagster.assets import experiment_figures as figures
from kgs_dagster.experiment_resource import POOL, ExperimentResource
from kgs_dagster.partitions import WORKLOADS, ExperimentRunKey, run_keys, run_partitions
from kgs_dagster.run_process import failures_named

if TYPE_CHECKING:
    from kgs_core.experiments.grid import Grid
    from kgs_core.experiments.store import ExperimentFolder
    from kgs_core.simulation.replay import Conditions
    from kgs_core.simulation.workload import StreamSpec

GROUP_NAME = "experiments"
WORKLOAD = dg.AssetKey([GROUP_NAME, "workload"])
PACKING_RUN = dg.AssetKey([GROUP_NAME, "packing_run"])
_DECIDING = ("packing", "simulation", "experiments")
"""Rooms of the core whose code decides what an experiment gives."""


@cache
def code_version(root: Path = Path(kgs_core.__file__).parent) -> str:
    """Version of the code that results follow from: Dagster calls what another one has made stale."""
    found = sha256()
    for path in sorted(path for room in _DECIDING for path in (root / room).rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def experiment_assets() -> list[dg.AssetsDefinition]:
    """The loads, and the experiment runs."""
    with warnings.catch_warnings():
        # a backfill policy counts as beta; the versions of Dagster are bounded, and no run needs to be told
        warnings.simplefilter("ignore", dg.BetaWarning)
        return [_workload(), _packing_run()]


def _workload() -> dg.AssetsDefinition:
    @dg.asset(
        key=WORKLOAD,
        code_version=code_version(),
        partitions_def=WORKLOADS,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
        description="A load to replay, with a row per measurement and partition. Generated from its name, as "
        "uniform-delta05-seed1 (200 partitions, 501 measurements) or uniform-delta05-seed1-p32-t2-n100 (32 of 2 "
        "topics, 101); or recorded, and registered by register_workload_job.",
        group_name=GROUP_NAME,
        kinds={"parquet"},
    )
    def workload(context: dg.AssetExecutionContext, kgs_experiment_resource: ExperimentResource) -> None:
        folder = kgs_experiment_resource.open(context.instance)
        with failures_named():
            for key in context.partition_keys:
                load, conditions = kgs_experiment_resource.load(folder, key)
                # a registered one is in its file already, for good
                path = folder.workload_file(key) if load.spec is None else folder.save_workload(load, conditions)
                context.add_asset_metadata(figures.of_load(load, conditions, path), partition_key=key)

    return workload


def _packing_run() -> dg.AssetsDefinition:
    @dg.asset(
        key=PACKING_RUN,
        code_version=code_version(),
        deps=[WORKLOAD],
        partitions_def=run_partitions(),
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=POOL,
        description="A load replayed through an algorithm, or through Kafka without one (a baseline): a row "
        "per measurement, with consumers, Rscore, moves and latencies. In a backfill, a run for each load or for each "
        "algorithm, whichever are fewer.",
        group_name=GROUP_NAME,
        kinds={"parquet"},
    )
    def packing_run(context: dg.AssetExecutionContext, kgs_experiment_resource: ExperimentResource) -> None:
        from kgs_core.experiments.grid import carry_out

        folder = kgs_experiment_resource.open(context.instance)
        keys = run_keys(context.partition_keys)
        partitions = {(key.name, key.workload): key.partition for key in keys}
        done, begin = 0, time.monotonic()

        with failures_named():
            for grid in _grids(kgs_experiment_resource, folder, keys):
                for experiment_run in grid.runs:
                    replayed = carry_out(grid, experiment_run)
                    summary = folder.save_run(replayed, grid.conditions)
                    path = folder.run_file(replayed.workload, experiment_run.name)
                    partition = partitions[experiment_run.name, replayed.workload]
                    context.add_asset_metadata(figures.of_run(summary, path), partition_key=partition)
                    done += 1
                    context.log.info(
                        f"{done} of {len(keys)}: {figures.run_text(summary)}, {time.monotonic() - begin:.1f} s so far"
                    )

    return packing_run


def _grids(
    experiments: ExperimentResource, folder: "ExperimentFolder", keys: Sequence[ExperimentRunKey]
) -> "list[Grid]":
    """The experiment runs, those under the same conditions together. All loads are looked at before any is replayed."""
    from kgs_core.experiments.grid import ExperimentRun, Grid
    from kgs_core.simulation.workload import Workload

    loads: dict[str, tuple[StreamSpec | Workload, Conditions]] = {}
    problems: list[str] = []
    for workload in dict.fromkeys(key.workload for key in keys):
        try:
            load, conditions = experiments.load(folder, workload)
            loads[workload] = (load.spec or load, conditions)  # a stream is drawn where it is replayed
        except ConfigError as e:
            problems += e.problems
    if problems:
        raise ConfigError(problems)
    grids = []
    for conditions in dict.fromkeys(conditions for _, conditions in loads.values()):
        mine = [(key, loads[key.workload][0]) for key in keys if loads[key.workload][1] == conditions]
        experiment_runs = [
            ExperimentRun(key.name, load.key if isinstance(load, Workload) else load) for key, load in mine
        ]
        recorded = {load.key: load for _, load in mine if isinstance(load, Workload)}
        grids.append(Grid(tuple(experiment_runs), conditions, recorded))
    return grids
