"""Summaries of many experiment runs as one Parquet table: what tables and plots of a comparison are made of."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kgs_core.errors import ConfigError
from kgs_core.simulation.comparison import Summary
from kgs_core.simulation.pool import LatencySummary
from kgs_core.simulation.workload import parse_key
from kgs_core.system.files import whole_file

_LATENCY = ("samples", "delayed", "mean_s", "p95_s", "p99_s", "p90_delayed_s")
_WHOLE = ("order", "measurements", "partitions", "moved", "samples", "delayed")
_PLAIN = (
    "order", "measurements", "partitions", "cbs", "average_rscore", "rscore_total", "mean_consumers", "least", "moved",
    "consumer_hours", "least_consumer_hours", "bytes_delayed",
)  # fmt: skip
SCHEMA = pa.schema(
    [
        ("workload", pa.string()),
        ("algorithm", pa.string()),
        ("start", pa.string()),  # this and the next two: null where the load was recorded
        ("delta", pa.int32()),
        ("seed", pa.int64()),
        *((name, pa.int64() if name in _WHOLE else pa.float64()) for name in (*_PLAIN, *_LATENCY)),
    ]
)


def save_summaries(path: Path, summaries: Sequence[Summary]) -> None:
    """Write a Parquet file, a row for each, that appears when it is whole."""
    with whole_file(path) as partial:
        pq.write_table(
            pa.Table.from_pylist([summary_row(one) for one in summaries], SCHEMA), partial, compression="zstd"
        )


def load_summaries(path: Path) -> list[Summary]:
    """What `save_summaries` wrote."""
    try:
        return [summary_of(row) for row in pq.read_table(path).to_pylist()]
    except OSError as e:
        raise ConfigError([f"{path}: {(e.strerror or 'unreadable').lower()}: make the summary first"]) from None
    except (pa.ArrowInvalid, KeyError, TypeError):
        raise ConfigError([f"{path}: no summary in it: make the summary again"]) from None


def summary_of(row: dict[str, Any]) -> Summary:
    """A summary from a row of the table."""
    latency = None if row["samples"] is None else LatencySummary(**{name: row[name] for name in _LATENCY})
    return Summary(
        name=row["algorithm"],
        workload=row["workload"],
        spec=None if row["start"] is None else parse_key(row["workload"]),
        latency=latency,
        **{name: row[name] for name in _PLAIN},
    )


def summary_row(one: Summary) -> dict[str, Any]:
    """A row of the table."""
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
