"""Partitions of experiments: loads, and ways to share out partitions.

Dagster takes two dimensions at most, so a load's start, delta and seed are one key. Loads are dynamic partitions,
generated ones, too, so that one dimension has room for recorded ones and for streams of any size.
"""

from collections.abc import Sequence
from typing import NamedTuple

import dagster as dg

from kgs_core.packing import ALGORITHMS, DEFAULT_CONSUMER_WEIGHT, front_of
from kgs_core.simulation.workload import DELTAS, STARTS, StreamSpec

ALGORITHM, WORKLOAD = "algorithm", "workload"
SEEDS = (1, 2, 3)
"""Of each published kind of stream: what one seed shows may be luck."""
BASELINES = ("kafka:15", "kafka:20", "kafka:24", "kafka:100", "kafka:120", "keda")
"""What algorithms are compared with."""

WORKLOADS = dg.DynamicPartitionsDefinition(name="kgs_workloads")


class ExperimentRunKey(NamedTuple):
    """One algorithm or baseline on one load; `partition` is what Dagster calls it."""

    name: str
    workload: str
    partition: str


def front_names() -> list[str]:
    """`search` along its front, from the fewest consumers to the fewest moves, as `kgs simulate --front` has it.

    Without the price that `search` has by itself: the same once more, by other random numbers.
    """
    return front_of("search", DEFAULT_CONSUMER_WEIGHT)


def run_partitions() -> dg.MultiPartitionsDefinition:
    """Every algorithm, `search` along its front, and the baselines, on every load."""
    names = dg.StaticPartitionsDefinition([*ALGORITHMS, *front_names(), *BASELINES])
    return dg.MultiPartitionsDefinition({ALGORITHM: names, WORKLOAD: WORKLOADS})


def run_keys(partitions: Sequence[str]) -> list[ExperimentRunKey]:
    """The experiment runs that a run is asked for."""
    found = []
    for partition in partitions:
        # algorithms come first, as Dagster orders dimensions by name; no name of one has the separator
        name, _, workload = partition.partition("|")
        found.append(ExperimentRunKey(name, workload, partition))
    return found


def published_keys() -> list[str]:
    """The loads of the published comparison, each with several seeds.

    A run of a backfill takes neighbours only, so those stand together that are most often run together: the whole of
    what was published, with one seed.
    """
    return [StreamSpec(delta, start, seed).key for seed in SEEDS for start in STARTS for delta in DELTAS]


def unregistered(instance: dg.DagsterInstance, keys: Sequence[str]) -> list[str]:
    """Those of `keys` that are no partitions yet."""
    known = set(instance.get_dynamic_partitions(_name()))
    return [key for key in keys if key not in known]


def register(instance: dg.DagsterInstance, keys: Sequence[str]) -> None:
    """Make partitions of `keys`; one that there is already stays where it is."""
    instance.add_dynamic_partitions(_name(), list(keys))


def _name() -> str:
    return str(WORKLOADS.name)
