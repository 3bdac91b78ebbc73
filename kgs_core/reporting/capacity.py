"""Capacity for people and for programs: what is configured, what consumers read, how far the one is off the other."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from kgs_core.planning.learnt_capacity import Capacity, Source
from kgs_core.reporting.plain_values import picked, plain

_DAY_MS = 86_400_000
_MB = 1e6
_SOURCES: Mapping[Source, str] = {
    "unknown": "until the controller has measured its machine",
    "configured": "as configured",
    "learnt": "learnt",
    "first": "by a short measurement of a machine, until a consumer has been flat out",
}


def capacity_sentences(found: Capacity, now_ms: int | None = None) -> Iterator[str]:
    """The drift, where somebody should know of it; with its date if that is not the day of `now_ms`, since 1970."""
    if (drift := found.drift) is None or not found.has_drifted:
        return
    than = "less" if drift < 0 else "more"
    since = since_text(found.learnt.since_ms, now_ms)
    text = f"consumers have read {abs(drift):.0%} {than} than the configured capacity {since}"
    cure = "measure again (kgs capacity), or remove the capacities from kgs.yaml: they are then learnt"
    yield f"{text}: {'consumers are given more than they can read' if drift < 0 else 'fewer would do'}: {cure}"


def capacity_line(found: Capacity) -> str:
    """The figures in use, in one line, and where they come from."""
    learnt, in_use = found.learnt, found.packing
    shown = f"consumer_capacity {_mb(in_use.consumer_capacity)} MB/s {_SOURCES[found.source]}"
    if learnt.bytes_per_s is not None:
        who = "1 consumer" if learnt.consumers == 1 else f"{learnt.consumers} consumers"
        known = f"{_mb(found.consumer_bytes_per_s or 0.0)} learnt, " if found.source == "configured" else ""
        shown += f" ({known}{who} flat out at {_mb(learnt.bytes_per_s)} MB/s stored)"
    sizes = {name: size.capacity for name, size in in_use.classes_of({}).sizes.items()}
    each = ", ".join(f"{name} {_mb(capacity)}" for name, capacity in sizes.items())
    return f"{shown}; packed to {each or _mb(in_use.packing_capacity)}"


def capacity_values(found: Capacity) -> dict[str, Any]:
    """The same as plain values for JSON; null where something is not known.

    Returns:
        {"source": "configured" | "learnt" | "first" | "unknown", "configured_bytes_per_s" (consumer_capacity; null:
        it is learnt), "learnt_bytes_per_s" (as a consumer_capacity), "flat_out_bytes_per_s" (what that is made of),
        "in_use": {"packing_capacity_bytes_per_s", "consumer_capacity_bytes_per_s"}, "drift" (share of the configured
        one, below 0: less), "alarm", "since_ms", "consumers" (whose readings count), "busy_s", "age_s", "hardware",
        "each": {consumer: flat out, bytes_per_s}}. All are stored bytes.
    """
    learnt, is_known = found.learnt, found.learnt.bytes_per_s is not None
    in_use = found.packing
    return {
        "source": found.source,
        "configured_bytes_per_s": plain(found.configured),
        "learnt_bytes_per_s": plain(found.consumer_bytes_per_s),
        "flat_out_bytes_per_s": plain(learnt.bytes_per_s),
        "in_use": {
            "packing_capacity_bytes_per_s": plain(in_use.packing_capacity),
            "consumer_capacity_bytes_per_s": plain(in_use.consumer_capacity),
        },
        **picked(found, "drift"),
        "alarm": found.has_drifted,
        "since_ms": learnt.since_ms if is_known else None,
        **picked(learnt, "consumers", "busy_s"),
        "age_s": plain(learnt.age_s) if is_known else None,
        **picked(learnt, "hardware", "each"),
    }


def since_text(since_ms: int, now_ms: int | None) -> str:
    """`since 14:10Z`; with the date where that is not today, or today is not known. A clock may be wrong."""
    try:
        at = datetime.fromtimestamp(since_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # after the year 9999
        return "since a time that is none"
    is_today = now_ms is not None and since_ms // _DAY_MS == now_ms // _DAY_MS
    return f"since {at:%H:%M}Z" if is_today else f"since {at:%Y-%m-%d %H:%M}Z"


def _mb(bytes_per_s: float) -> str:
    return f"{bytes_per_s / _MB:.3g}"
