"""Loads as Parquet: one row per measurement and partition, with what is needed to replay them again."""

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.errors import ConfigError
from kgs_core.experiments.results import conditions_of
from kgs_core.model import TopicPartition
from kgs_core.simulation.replay import Conditions
from kgs_core.simulation.workload import Workload
from kgs_core.system.files import whole_file

_SCHEMA = pa.schema(
    [
        ("measurement", pa.int32()),
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("speed", pa.float64()),  # in the unit of `capacity` below
    ]
)
_KEY, _CAPACITY, _COUNT, _CONDITIONS = b"kgs.workload", b"kgs.capacity", b"kgs.measurements", b"kgs.conditions"


def save_load(path: Path, workload: Workload, conditions: Conditions) -> None:
    """Write a Parquet file that appears when it is whole."""
    schema = _SCHEMA.with_metadata(
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
    with whole_file(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def load_load(path: Path) -> tuple[Workload, Conditions]:
    """What `save_load` wrote, partitions in the order in which they were."""
    try:
        table = pq.read_table(path)
        notes = table.schema.metadata
        measurements: list[dict[TopicPartition, float]] = [{} for _ in range(int(notes[_COUNT]))]
        for number, topic, partition, speed in zip(*(table[name].to_pylist() for name in _SCHEMA.names), strict=True):
            measurements[number][TopicPartition(topic, partition)] = speed
        workload = Workload(notes[_KEY].decode(), float(notes[_CAPACITY]), measurements)
        return workload, conditions_of(notes[_CONDITIONS])
    except OSError as e:
        raise ConfigError([f"{path}: {(e.strerror or 'unreadable').lower()}: register the load again"]) from None
    except (pa.ArrowInvalid, KeyError, IndexError, TypeError, ValueError):
        raise ConfigError([f"{path}: no load in it: delete it, and register the load again"]) from None
