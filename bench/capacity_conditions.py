"""`bench capacity`: whether a consumer has one capacity, whatever it reads; the paper's test in its conditions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.records import DIFFERENT, FIELDS, produce_backlog, record_values
from kgs_core.config import Settings, parse_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError
from kgs_core.monitor.speeds.rates import RateDistribution, spread
from kgs_core.runtime.capacity_test import CapacityResult, Progress, run_capacity_test
from kgs_core.system.shutdown import StopFlag

Say = Callable[[str], None]
_MADE_S = 60.0


@dataclass(frozen=True, slots=True)
class Condition:
    """What there is to read.

    Attributes:
        total_bytes: stored, spread evenly over the partitions.
        partitions: in all topics.
        tables: as many as topics.
    """

    name: str
    total_bytes: int
    partitions: int
    tables: int

    def scaled(self, share: float) -> "Condition":
        """As many partitions and tables with `share` of the bytes."""
        return Condition(self.name, round(self.total_bytes * share), self.partitions, self.tables)

    @property
    def topics(self) -> list[tuple[str, int]]:
        """Name and partitions of each topic: as alike as can be."""
        least, more = divmod(self.partitions, self.tables)
        prefix = self.name.replace(" ", "-")
        return [(f"{prefix}.{number}", least + (number < more)) for number in range(self.tables)]


CONDITIONS = (
    Condition("test 1", 648_000_000, 32, 1),
    Condition("test 2", 100_000_000, 116, 5),
    Condition("test 3", 678_000_000, 144, 5),
)
"""Landau 2022, Table VI."""


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """What one consumer read in one condition; rates in stored bytes/s."""

    condition: Condition
    found: CapacityResult
    rates: RateDistribution

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "name": self.condition.name,
            "total_bytes": self.found.backlog_bytes,
            "partitions": self.found.partitions,
            "tables": self.found.tables,
            "mode_bytes_per_s": self.rates.mode,
            "percentiles_bytes_per_s": {str(p): rate for p, rate in self.rates.percentiles.items()},
            "saturated": self.found.is_saturated,
            "rates_bytes_per_s": self.found.rates,
        }


@dataclass(frozen=True, slots=True)
class ConditionsPlan:
    """Plan of what to measure.

    Attributes:
        seconds: of reading in each condition; a backlog that ends sooner is read again, into new tables.
        batch_bytes: of the consumer, in all conditions.
    """

    seconds: float = 60.0
    batch_bytes: int = 5_000_000
    conditions: Sequence[Condition] = CONDITIONS


def run_conditions(
    plan: ConditionsPlan, folder: Path, say: Say, progress: Progress, stop: StopFlag
) -> Iterator[ConditionResult]:
    """One after the other, on a broker of its own and with the same settings.

    Raises:
        PermanentError: no broker can be started, or nothing was read in time.
    """
    with EmbeddedKafka.start(folder / "kafka", log=say) as kafka:
        values = record_values(DIFFERENT)
        for condition in plan.conditions:
            say(f"{condition.name}: writing {condition.total_bytes / 1e6:.0f} MB")
            _fill(condition, kafka, values)
            say(f"{condition.name}: reading for {plan.seconds:g} s")
            settings = _settings(condition, plan.batch_bytes, kafka, folder)
            found = run_capacity_test(settings, plan.seconds, progress, stop)
            if stop.is_set:
                return
            if not found.cycles:
                raise PermanentError(f"bench: {condition.name}: nothing was read in time: raise --seconds")
            yield ConditionResult(condition, found, spread(found.rates))


def widest_gap(results: Sequence[ConditionResult]) -> float:
    """By how much the highest mode is above the lowest: 0.1 is 10 %."""
    modes = [result.rates.mode for result in results]
    return max(modes) / min(modes) - 1


def _fill(condition: Condition, kafka: EmbeddedKafka, values: Sequence[bytes]) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 2})
    made = client.create_topics([NewTopic(name, partitions, 1) for name, partitions in condition.topics])
    for future in made.values():
        future.result(_MADE_S)
    for name, partitions in condition.topics:
        share = condition.total_bytes * partitions // condition.partitions
        produce_backlog(kafka.bootstrap_servers, [name], partitions, share, values)


def _settings(condition: Condition, batch_bytes: int, kafka: EmbeddedKafka, folder: Path) -> Settings:
    prefix = condition.name.replace(" ", "-")
    schema = ", ".join(f"{name}: {kind}" for name, kind in FIELDS.items())
    text = f"""
group: bench
kafka: {{bootstrap_servers: "{kafka.bootstrap_servers}"}}
lake: {{root: "{folder / "lake"}"}}
topics: [{{pattern: '{prefix}\\..*', format: json, schema: {{{schema}}}}}]
consumer: {{batch_bytes: {batch_bytes}, wait_time_s: 1.0}}
"""
    return parse_settings(text.encode(), "bench", {})
