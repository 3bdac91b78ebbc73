"""The group as plain values for JSON."""

from typing import Any

from kgs_core.lake.rule.completeness import Completeness
from kgs_core.reporting.capacity import capacity_values
from kgs_core.reporting.plain_values import picked, plain
from kgs_core.reporting.plan_json import assignment_values
from kgs_core.reporting.status import GroupStatus


def status_values(found: GroupStatus) -> dict[str, Any]:
    """The group as values for JSON; null where something is not known.

    Returns:
        Attributes of `GroupStatus` by their names, and: {"controller": "heard" | "silent", "converged", "target":
        {topic: {partition: consumer}} or null before the first, "current": likewise, "consumers": [see
        `ConsumerRow.to_dict`], "changes": [see `Change`] from the earliest to the latest, "waiting": {"topic:0": why},
        "plan": of the target, or null, "replacement": {"waits_for", "refused": {"topic:0": why its successor cannot
        open it}} or null where nobody is to be replaced, "capacity": see `capacity_values`, "measured_age_s",
        "problems": [line], "apply_asked_by": whose request for `kgs plan --apply` is open, or null, "idle_since_ms":
        since when everything is read, ms since 1970, or null while the group is awake, "complete": of tables with
        complete_hours, see `completeness_values`, "newest_rows": {derived table: {"lag_s": null where it is not known,
        "max_lag_s"}}}
    """
    target, request, wait = found.target, found.request, found.replacement
    return {
        "group": found.group,
        "controller": "heard" if found.controller_is_heard else "silent",
        "converged": found.is_converged,
        "target": assignment_values(target.assignment) if target is not None else None,
        "current": assignment_values(found.current),
        "topics_consumed": found.topics_consumed,
        "consumers": [row.to_dict() for row in found.consumers],
        **picked(found, "lag", "known_lag", "lag_unknown_partitions"),
        "changes": [picked(change, *_OF_CHANGE) for change in found.changes],
        "waiting": plain(found.waiting),
        "plan": None if target is None else picked(target, *_OF_PLAN) | {"capacity_bytes_per_s": target.capacity},
        "desired_state": _if_any(found.desired_state, "state", "by", "time_ms"),
        "wanted": _if_any(found.wanted, "version", "config_hash", "by", "time_ms"),
        "outdated": list(found.outdated),
        "replacement": None if wait is None else {"waits_for": wait.what, **picked(wait, "refused")},
        "failures": plain(found.failures),
        **picked(found.facts, "measured_age_s", "problems"),
        "bad_shares": dict(found.bad_shares),
        "capacity": capacity_values(found.capacity),
        "forced_only": found.forced_only,
        "apply_asked_by": request.by if request is not None else None,
        "quiet_until": found.quiet_until or None,
        **picked(found, "rscore_left"),
        "idle_since_ms": found.idle.since_ms if found.idle is not None else None,
        "complete": [completeness_values(each) for each in found.facts.complete],
        "newest_rows": {
            table: {"lag_s": lag_s, "max_lag_s": most_s} for table, (lag_s, most_s) in found.facts.newest_rows.items()
        },
    }


def completeness_values(found: Completeness) -> dict[str, Any]:
    """How far a table is complete as values for JSON.

    Returns:
        {"table", "complete_until": ISO time or null, "lateness_s", "held_by": "topic:0" or null, "problem" or null}
    """
    return {
        "table": found.table,
        "complete_until": found.until.isoformat() if found.until else None,
        "lateness_s": found.lateness_s,
        "held_by": str(found.held_by) if found.held_by else None,
        "problem": found.problem or None,
    }


def _if_any(source: object | None, *names: str) -> dict[str, Any] | None:
    return None if source is None else picked(source, *names)


_OF_CHANGE = (
    *("time_ms", "reason", "moved", "rscore", "consumers"),
    *("duration_s", "seen_s", "decided_s", "started_s", "handed_over_s", "iterations"),
)
_OF_PLAN = ("algorithm", "rscore", "reason", "time_ms", "spares", "quarantined")
