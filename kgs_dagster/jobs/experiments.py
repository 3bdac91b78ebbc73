"""Jobs of the experiments: experiment runs, the reports on them, and further loads."""

from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from kgs_core.lake.files.stored_path import AnyPath
from kgs_dagster.assets import experiment_figures as figures
from kgs_dagster.assets.experiment_reports import FRONT, SUMMARY
from kgs_dagster.assets.experiments import PACKING_RUN, WORKLOAD
from kgs_dagster.experiment_resource import ExperimentResource
from kgs_dagster.jobs.shape import AssetJob, Job
from kgs_dagster.launch import ROLE
from kgs_dagster.partitions import register, unregistered
from kgs_dagster.run_process import failures_named

if TYPE_CHECKING:
    from kgs_core.experiments.store import ExperimentFolder

_TAGS = {ROLE: "experiment"}


class WorkloadConfig(dg.Config):
    """A recorded load to experiment with."""

    key: str = Field(default="", description="Name of the load; empty: that of its file.")
    file: str = Field(
        description='Recorded load in the folder KGS_EXPERIMENTS_RECORDINGS: JSON lines {"time": s, "speeds": '
        '{topic: {"0": bytes/s}}}. `kgs simulate --since TIME --save-speeds FILE` writes one. It is copied.',
    )
    capacity: float = Field(default=1_500_000.0, gt=0, description="Packing capacity C of one consumer, bytes/s.")
    interval_s: float = Field(default=30.0, gt=0, description="How long a measurement lasts.")


def experiment_jobs() -> list[Job]:
    """In the order in which they are of use."""
    return [_register_job(), _experiments_job(), _report_job()]


def _experiments_job() -> AssetJob:
    return dg.define_asset_job(
        "experiments_job",
        selection=dg.AssetSelection.assets(PACKING_RUN),
        description="Runs: an algorithm or baseline on a load. A backfill of any slice takes a run per load or per "
        "algorithm, whichever are fewer.",
        executor_def=dg.in_process_executor,
        tags=_TAGS,
    )


def _report_job() -> AssetJob:
    return dg.define_asset_job(
        "experiments_report_job",
        selection=dg.AssetSelection.assets(SUMMARY, FRONT),
        description="Summary and front of all experiment runs.",
        executor_def=dg.in_process_executor,
        tags=_TAGS,
    )


def _register_job() -> dg.JobDefinition:
    @dg.op(out=dg.Out(dg.Nothing))
    def register_workload(
        context: dg.OpExecutionContext, config: WorkloadConfig, kgs_experiment_resource: ExperimentResource
    ) -> None:
        folder = kgs_experiment_resource.open(context.instance)
        with failures_named():
            key = _recorded(config, kgs_experiment_resource.recording(config.file), folder)
        for new in unregistered(context.instance, [key]):
            register(context.instance, [new])
            # It is there for good: experiment runs have it upstream from now on
            load, conditions = kgs_experiment_resource.load(folder, key)
            about = figures.of_load(load, conditions, folder.workload_file(key))
            context.log_event(dg.AssetMaterialization(WORKLOAD, partition=key, metadata=about))

    @dg.job(
        description="Adds a recorded load to the partitions of the experiments, from a file, which is copied to the "
        "results. Generated ones are added by their names where partitions are chosen.",
        executor_def=dg.in_process_executor,
        tags=_TAGS,
    )
    def register_workload_job() -> None:
        register_workload()

    return register_workload_job


def _recorded(config: WorkloadConfig, path: AnyPath, folder: "ExperimentFolder") -> str:
    from kgs_core.monitor.speeds.recorded import parse_measurements
    from kgs_core.simulation.latency import LatencySettings
    from kgs_core.simulation.recorded import recorded_workload
    from kgs_core.simulation.replay import Conditions
    from kgs_core.system.files import read_text

    measurements = parse_measurements(read_text(path), config.file)
    key = config.key or path.stem
    latency = LatencySettings(interval_s=config.interval_s)
    workload = recorded_workload(key, measurements, config.capacity)
    folder.register(workload, Conditions(config.capacity, latency))
    return key
