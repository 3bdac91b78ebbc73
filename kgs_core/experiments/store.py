"""A folder of experiments, on a disk or in a store of objects, each file of which is whole.

workload/<workload>.parquet                    a row per measurement and partition
packing_run/<workload>/<algorithm>.parquet     a row per measurement; `:` in the name is `-`
algorithm_summary.parquet                      a row per experiment run
<plot>.svg
"""

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.errors import ConfigError
from kgs_core.experiments.results import conditions_of, reading, save_results
from kgs_core.lake.files.stored_path import AnyPath, StoredPath
from kgs_core.model import TopicPartition, grouped
from kgs_core.packing import ALGORITHMS, parse_name
from kgs_core.simulation.comparison import PUBLISHED, Replayed, Summary, cardinal_bin_score, summarize
from kgs_core.simulation.pool import LatencySummary
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import CAPACITY, STARTS, StreamSpec, Workload, parse_key
from kgs_core.system.files import answering, write_whole

_SIDE_BY_SIDE = 16
_ELSEWHERE = "name another folder"
_SPEEDS = pa.schema(
    [
        ("measurement", pa.int32()),
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("speed", pa.float64()),  # in the unit of `capacity` below
    ]
)
_KEY, _CAPACITY, _COUNT, _CONDITIONS = b"kgs.workload", b"kgs.capacity", b"kgs.measurements", b"kgs.conditions"
_SUMMARY = b"kgs.summary"
_LATENCY = ("samples", "delayed", "mean_s", "p95_s", "p99_s", "p90_delayed_s")
_WHOLE = ("order", "measurements", "partitions", "moved", "samples", "delayed")
_PLAIN = (
    "order", "measurements", "partitions", "cbs", "average_rscore", "rscore_total", "mean_consumers", "least", "moved",
    "consumer_hours", "least_consumer_hours", "bytes_delayed",
)  # fmt: skip
_SUMMARIES = pa.schema(
    [
        ("workload", pa.string()),
        ("algorithm", pa.string()),
        ("start", pa.string()),  # this and the next two: null where the load was recorded
        ("delta", pa.int32()),
        ("seed", pa.int64()),
        *((name, pa.int64() if name in _WHOLE else pa.float64()) for name in (*_PLAIN, *_LATENCY)),
    ]
)
_RECORDED_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_generated(key: str) -> bool:
    """Whether `key` has the form of a generated load's, be it a possible one or not."""
    try:
        parse_key(key)
    except ConfigError:
        return False
    return True


def stream_of(key: str) -> StreamSpec:
    """The stream that `key` names, written as its own key is. Raises `ConfigError` if there can be none such."""
    spec = parse_key(key)
    if spec.key != key:
        raise ConfigError([f"workload '{key}': write {spec.key}"])
    if not 1 <= spec.topics <= spec.partitions or spec.delta > CAPACITY:
        raise ConfigError([f"workload '{key}': at least one topic, at least a partition for each, delta at most 100"])
    return spec


class ExperimentFolder:
    """Reads and writes; a file that is there already is replaced by one of the same content.

    Raises `ConfigError` if a file cannot be read or written, is not there, or is one of something else.
    """

    def __init__(self, root: AnyPath) -> None:
        self.root = root

    def workload_file(self, key: str) -> AnyPath:
        """Of a load."""
        return self.root / "workload" / f"{key}.parquet"

    def run_file(self, workload: str, name: str) -> AnyPath:
        """Of one algorithm on one load."""
        return self.root / "packing_run" / workload / f"{name.replace(':', '-')}.parquet"

    @property
    def summary_file(self) -> AnyPath:
        """Of all experiment runs."""
        return self.root / "algorithm_summary.parquet"

    def register(self, workload: Workload, conditions: Conditions) -> AnyPath:
        """Keep a recorded load for good: what an experiment was made with must not change under it.

        Raises:
            ConfigError: a name that cannot be, or that another load has.
        """
        key = workload.key
        if _RECORDED_KEY.fullmatch(key) is None:
            raise ConfigError([f"workload '{key}': use letters, digits, '.', '_' and '-', at most 100"])
        if is_generated(key):
            raise ConfigError([f"workload '{key}': is the name of a generated load: choose another"])
        path = self.workload_file(key)
        if not _is_there(path):
            self.save_workload(workload, conditions)
        elif _load_load(path) != (workload, conditions):
            raise ConfigError([f"workload '{key}': another load has that name, in {path}: choose another"])
        return path

    def save_workload(self, workload: Workload, conditions: Conditions) -> AnyPath:
        """Write a load.

        Raises:
            ConfigError: it cannot be written.
        """
        path = self.workload_file(workload.key)
        _make(path.parent)
        _save_load(path, workload, conditions)
        return path

    def recorded(self, key: str) -> tuple[Workload, Conditions]:
        """A registered load.

        Raises:
            ConfigError: there is none.
        """
        path = self.workload_file(key)
        if _RECORDED_KEY.fullmatch(key) is None or not _is_there(path):
            raise ConfigError(
                [f"workload '{key}': no load is registered as that, and none is generated (uniform-delta05-seed1)"]
            )
        return _load_load(path)

    def save_run(self, one: Replayed, conditions: Conditions) -> Summary:
        """Write the rows of a run, and its summary beside them, which takes longer to compute than to replay.

        Raises:
            ConfigError: they cannot be written.
        """
        (summary,) = summarize([one], conditions)
        path = self.run_file(one.workload, one.name)
        _make(path.parent)
        notes = {_SUMMARY: json.dumps(_summary_row(summary), allow_nan=False).encode()}
        save_results(path, [one], conditions, notes)
        return summary

    def summaries(self) -> list[Summary]:
        """Of all runs that there are, by load and name, with CBS where all published algorithms have replayed it.

        Raises:
            ConfigError: a file that cannot be read.
        """
        found: list[Summary] = []
        with answering(self.root, _ELSEWHERE):
            files = [(path.parent.name, path) for path in (self.root / "packing_run").glob("*/[!.]*.parquet")]
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "runs") as pool:  # a store takes a while for each
            for load, paths in grouped(files).items():
                found += _of_load(load, list(pool.map(_run, paths)))
        return sorted(found, key=_place)

    def save_summaries(self, summaries: Sequence[Summary]) -> AnyPath:
        """Write the summary of all experiment runs.

        Raises:
            ConfigError: it cannot be written.
        """
        _make(self.root)
        _save_table(self.summary_file, pa.Table.from_pylist([_summary_row(one) for one in summaries], _SUMMARIES))
        return self.summary_file

    def load_summaries(self) -> list[Summary]:
        """The summary as it was last made.

        Raises:
            ConfigError: it has not been made.
        """
        path = self.summary_file
        of_another_kind = "no summary in it: make the summary again"
        with reading(path, cure="make the summary first", of_another_kind=of_another_kind) as file:
            return [_summary_of(row) for row in pq.read_table(file).to_pylist()]

    def save_plot(self, name: str, svg: str) -> AnyPath:
        """Write a picture.

        Raises:
            ConfigError: it cannot be written.
        """
        path = self.root / f"{name}.svg"
        _make(self.root)
        write_whole(path, svg.encode())
        return path


def _place(one: Summary) -> tuple[object, ...]:
    """Recorded loads first, generated ones as they were published; algorithms as they are listed, then baselines."""
    at = _listed(one.name)
    if one.spec is None:
        return -1, 0, 0, one.workload, at, one.name
    return STARTS.index(one.spec.start), one.spec.delta, one.spec.seed, one.workload, at, one.name


def _listed(name: str) -> tuple[int, float]:
    """Where an algorithm stands; with a setting after all without one, from the dearest consumer to the cheapest."""
    algorithm, _, setting = name.partition("@")
    meant = parse_name(name)
    if meant is None:
        return 2 * len(ALGORITHMS), 0.0
    at = list(ALGORITHMS).index(algorithm)
    return (at + len(ALGORITHMS), -(meant[1] or math.inf)) if setting else (at, 0.0)


def _of_load(load: str, runs: Sequence[tuple[Summary, list[int]]]) -> Iterator[Summary]:
    """The experiment runs of one load, with CBS."""
    if len({len(numbers) for _, numbers in runs}) > 1:
        raise ConfigError([f"workload '{load}': its experiment runs are of different loads: run them again"])
    consumers = {summary.name: (summary, numbers) for summary, numbers in runs}
    published = [consumers[name][1] for name in PUBLISHED if name in consumers]
    least = [min(numbers) for numbers in zip(*published, strict=True)] if len(published) == len(PUBLISHED) else None
    for summary, numbers in consumers.values():
        yield replace(summary, cbs=cardinal_bin_score(numbers, least)) if least is not None else summary


def _run(path: AnyPath) -> tuple[Summary, list[int]]:
    of_another_kind = "no rows of an experiment run in it: delete it, and make the run again"
    with (
        reading(path, cure="make the run again", of_another_kind=of_another_kind) as there,
        pq.ParquetFile(there) as file,
    ):
        summary = _summary_of(json.loads(file.metadata.metadata[_SUMMARY]))
        return summary, file.read(columns=["consumers"])["consumers"].to_pylist()


def _summary_of(row: dict[str, Any]) -> Summary:
    latency = None if row["samples"] is None else LatencySummary(**{name: row[name] for name in _LATENCY})
    return Summary(
        name=row["algorithm"],
        workload=row["workload"],
        spec=None if row["start"] is None else parse_key(row["workload"]),
        latency=latency,
        **{name: row[name] for name in _PLAIN},
    )


def _summary_row(one: Summary) -> dict[str, Any]:
    spec = one.spec
    latency = asdict(one.latency) if one.latency is not None else dict.fromkeys(_LATENCY)
    return {
        "workload": one.workload,
        "algorithm": one.name,
        "start": spec.start if spec else None,
        "delta": spec.delta if spec else None,
        "seed": spec.seed if spec else None,
        **{name: getattr(one, name) for name in _PLAIN},
        **latency,
    }


def _save_load(path: AnyPath, workload: Workload, conditions: Conditions) -> None:
    schema = _SPEEDS.with_metadata(
        {
            _KEY: workload.key.encode(),
            _CAPACITY: repr(float(workload.capacity)).encode(),
            _COUNT: str(len(workload.measurements)).encode(),  # one without partitions has no row
            _CONDITIONS: json.dumps(asdict(conditions)).encode(),
        }
    )
    rows = [(number, tp, speed) for number, speeds in enumerate(workload.measurements) for tp, speed in speeds.items()]
    table = pa.table(
        {
            "measurement": pa.array([number for number, _, _ in rows], pa.int32()),
            "topic": pa.array([tp.topic for _, tp, _ in rows], pa.string()).dictionary_encode(),
            "partition": pa.array([tp.partition for _, tp, _ in rows], pa.int32()),
            "speed": pa.array([speed for _, _, speed in rows], pa.float64()),
        },
        schema=schema,
    )
    _save_table(path, table)


def _save_table(path: AnyPath, table: pa.Table) -> None:
    written = io.BytesIO()
    pq.write_table(table, written, compression="zstd")
    write_whole(path, written.getvalue())


def _load_load(path: AnyPath) -> tuple[Workload, Conditions]:
    """What `_save_load` wrote, partitions in the order in which they were."""
    of_another_kind = "no load in it: delete it, and register the load again"
    with reading(path, cure="register the load again", of_another_kind=of_another_kind) as file:
        table = pq.read_table(file)
        notes = table.schema.metadata
        measurements: list[dict[TopicPartition, float]] = [{} for _ in range(int(notes[_COUNT]))]
        for number, topic, partition, speed in zip(*(table[name].to_pylist() for name in _SPEEDS.names), strict=True):
            measurements[number][TopicPartition(topic, partition)] = speed
        workload = Workload(notes[_KEY].decode(), float(notes[_CAPACITY]), measurements)
        return workload, conditions_of(notes[_CONDITIONS])


def _make(folder: AnyPath) -> None:
    if not isinstance(folder, StoredPath):  # folders are names there
        with answering(folder, _ELSEWHERE):
            folder.mkdir(parents=True, exist_ok=True)


def _is_there(file: AnyPath) -> bool:
    with answering(file, _ELSEWHERE):
        return file.exists()
