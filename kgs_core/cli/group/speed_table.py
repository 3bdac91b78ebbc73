"""Table and JSON of a measurement, largest first."""

from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from kgs_core.cli.terminal import plain_table
from kgs_core.group.view.plain_text import UNKNOWN, megabytes
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds import Measurement, PartitionSpeed, Verdict


def ranked(measurement: Measurement) -> list[tuple[TopicPartition, PartitionSpeed]]:
    """Fastest first, unknown ones after them, each by name."""
    return sorted(
        measurement.speeds.items(),
        key=lambda item: (item[1].bytes_per_s is None, -(item[1].bytes_per_s or 0.0), item[0]),
    )


def speed_table(measurement: Measurement, top: int) -> RenderableType:
    """A line of totals and the `top` fastest partitions."""
    table = plain_table()
    table.add_column("partition", min_width=16, overflow="fold")
    for name in ("MB/s", "share"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("")
    total = measurement.total_bytes_per_s
    rows = ranked(measurement)
    for tp, speed in rows[:top]:
        share = "" if total == 0 else f"{(speed.bytes_per_s or 0.0) / total:.1%}"
        table.add_row(
            Text(str(tp)),
            megabytes(speed.bytes_per_s),
            UNKNOWN if speed.bytes_per_s is None else share,
            Text(speed.verdict, style="" if speed.verdict is Verdict.MEASURED else "yellow"),
            Text(speed.reason, style="dim"),
        )
    more = [Text(f"and {len(rows) - top} more", style="dim")] if len(rows) > top else []
    return Group(headline(measurement), table, *more)


def headline(measurement: Measurement) -> Text:
    """When, how much in all, and how much of it is known."""
    known = len(measurement.known)
    text = (
        f"{_time(measurement):%H:%M:%S} | {measurement.total_bytes_per_s / 1e6:.3f} MB/s stored | "
        f"speed known of {known} of {len(measurement.speeds)} partitions | by {measurement.reading.measure}"
    )
    return Text(text, style="bold")


def as_json(measurement: Measurement) -> dict[str, Any]:
    """The measurement as one JSON object, partitions fastest first.

    Keys: `time` (UTC), `measure`, `total_bytes_per_s`, and `partitions`: `topic`, `partition`, `bytes_per_s` (stored;
    null when not known), `share` of the total, `verdict`, `reason`, and where it was read `leader`, `log_start`,
    `end_offset`, `size_bytes`.
    """
    total = measurement.total_bytes_per_s
    return {
        "time": _time(measurement).isoformat(timespec="milliseconds"),
        "measure": str(measurement.reading.measure),
        "total_bytes_per_s": total,
        "partitions": [_partition(measurement, tp, speed, total) for tp, speed in ranked(measurement)],
    }


def _partition(measurement: Measurement, tp: TopicPartition, speed: PartitionSpeed, total: float) -> dict[str, Any]:
    known = speed.bytes_per_s
    found: dict[str, Any] = {
        "topic": tp.topic,
        "partition": tp.partition,
        "bytes_per_s": known,
        "share": known / total if known is not None and total > 0 else None,
        "verdict": str(speed.verdict),
        "reason": speed.reason,
    }
    log = measurement.reading.partitions.get(tp)
    if log is not None:
        found |= {
            "leader": log.leader,
            "log_start": log.log_start,
            "end_offset": log.end_offset,
            "size_bytes": log.size_bytes,
        }
    return found


def _time(measurement: Measurement) -> datetime:
    return datetime.fromtimestamp(measurement.reading.wall_ms / 1000, UTC)
