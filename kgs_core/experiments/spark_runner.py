"""A grid of experiments as a Spark job: one task per experiment run, on this machine or on a cluster."""

from collections.abc import Iterable, Iterator
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kgs_core.config.settings import SparkSettings
from kgs_core.errors import PermanentError, PortError
from kgs_core.experiments.grid import Grid, Progress, carry_out
from kgs_core.experiments.results import SCHEMA, replays_of, results_table
from kgs_core.simulation.comparison import Replayed
from kgs_core.spark.errors import cause
from kgs_core.spark.session import interrupt_handler_kept, start_spark, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JOB = "kgs experiments"
_LOOK_S = 0.5
_RUNS_WITH_LATENCY = 64
"""In one job: their rows, some megabytes each, are in the driver's memory at once."""


def run_on_spark(grid: Grid, settings: SparkSettings, progress: Progress) -> list[Replayed]:
    """All experiment runs, in their order; to the bit what `run_here` gives, since random numbers belong to the run.

    On a cluster, kgs must be installed where the tasks run.

    Raises:
        PermanentError: there is no Java, Spark does not start, or the job fails.
    """
    spark = _start(settings)
    found: list[Replayed] = []
    each = _RUNS_WITH_LATENCY if grid.conditions.record_latency else len(grid.runs)
    try:
        for begin in range(0, len(grid.runs), max(1, each)):
            found += _run_job(spark, grid, range(begin, min(begin + each, len(grid.runs))), progress)
    except Exception as e:
        what = f"Spark {settings.master}: the job failed: {cause(e)}: is kgs installed where the tasks run?"
        raise PermanentError(what) from e
    finally:
        stop_spark(spark)
    return found


def _start(settings: SparkSettings) -> "SparkSession":
    try:
        with interrupt_handler_kept():
            return start_spark(settings, _JOB)
    except PortError:
        raise
    except Exception as e:  # py4j and Spark raise anything
        what = f"Spark {settings.master}: does not start: {cause(e)}: name another master, or do without --spark"
        raise PermanentError(what) from e


def _run_job(spark: "SparkSession", grid: Grid, numbers: range, progress: Progress) -> Iterable[Replayed]:
    from pyspark import InheritableThread
    from pyspark.sql.pandas.types import from_arrow_schema

    # as many partitions as rows: each task gets the number of one experiment run
    frame = spark.range(numbers.start, numbers.stop, 1, len(numbers))
    answer: list[Any] = []
    done = Event()

    def collect() -> None:
        try:
            answer.append(frame.mapInArrow(partial(_task, grid), from_arrow_schema(SCHEMA)).toArrow())
        except Exception as e:  # noqa: BLE001 - raised again where it is waited for
            answer.append(e)
        finally:
            done.set()

    group = (
        f"experiment runs from {numbers.start}"  # told apart from the job before, which may count as active for a while
    )
    spark.sparkContext.setJobGroup(group, _JOB)
    thread = InheritableThread(target=collect, name="experiments", daemon=True)
    thread.start()
    try:
        most = 0
        while not done.wait(_LOOK_S):
            most = max(most, _completed(spark, group))  # a stage that is over is soon forgotten
            progress(numbers.start + most, len(grid.runs))
    except BaseException:
        spark.sparkContext.cancelAllJobs()
        raise
    thread.join()
    if isinstance(answer[0], Exception):
        raise answer[0]
    progress(numbers.stop, len(grid.runs))
    return replays_of(answer[0])


def _completed(spark: "SparkSession", group: str) -> int:
    """Tasks of the group's jobs that are done."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def _task(grid: Grid, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Body of a Spark task. The input is read to the end before anything is put out, else Spark ends the worker."""
    numbers = [number for batch in list(batches) for number in batch["id"].to_pylist()]
    for number in numbers:
        yield from results_table([carry_out(grid, grid.runs[number])]).combine_chunks().to_batches()
