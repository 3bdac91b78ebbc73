"""The group as plain values for JSON."""

from typing import Any

from kgs_core.controller.rolling_replacement import ReplacementWait
from kgs_core.protocol import Change, DesiredState, DesiredVersion, Target
from kgs_core.reporting.capacity import capacity_values
from kgs_core.reporting.plan_json import RSCORE_DIGITS, assignment_values, rounded
from kgs_core.reporting.status import GroupStatus


def status_values(found: GroupStatus) -> dict[str, Any]:
    """The group as values for JSON; null where something is not known.

    Returns:
        {"group", "controller": "heard" | "silent", "converged", "target": {topic: {partition: consumer}} or null before
        the first, "current": likewise, "topics_consumed" (how many), "consumers": [see `ConsumerRow.to_dict`],
        "lag" (records), "known_lag" (of the partitions whose lag is known), "lag_unknown_partitions", "changes":
        [{"time_ms", "reason", "moved", "rscore", "consumers", "duration_s", "seen_s", "decided_s", "started_s",
        "handed_over_s", "iterations"}] from the earliest to the latest, "waiting": {"topic:0": why},
        "plan": {"algorithm", "rscore", "reason", "time_ms", "capacity_bytes_per_s",
        "spares", "quarantined"} or null, "desired_state": {"state", "by", "time_ms"} or null, "wanted": {"version",
        "config_hash", "by", "time_ms"} or null, "outdated": [consumer], "replacement": {"waits_for", "refused":
        {"topic:0": why its successor cannot open it}} or null where nobody is to be replaced, "measured_age_s",
        "problems": [line], "bad_shares": {topic: share of bad records, 0 to 1, of those with too many}, "failures":
        {consumer that is not there: its last words}, "capacity": see `capacity_values`, "forced_only": whether other
        changes wait for `kgs plan --apply`, "apply_asked_by": whose request for that is open, or null, "quiet_until":
        "20:00Z" within a window of packing.forced_moves_only_utc, else null, "rscore_left": of max_rscore_per_hour, or
        null}
    """
    desired, wanted = found.desired_state, found.wanted
    return {
        "group": found.group,
        "controller": "heard" if found.controller_is_heard else "silent",
        "converged": found.is_converged,
        "target": assignment_values(found.target.assignment) if found.target is not None else None,
        "current": assignment_values(found.current),
        "topics_consumed": found.topics_consumed,
        "consumers": [line.to_dict() for line in found.consumers],
        "lag": found.lag,
        "known_lag": found.known_lag,
        "lag_unknown_partitions": found.lag_unknown_partitions,
        "changes": [_change(change) for change in found.changes],
        "waiting": {str(tp): why for tp, why in sorted(found.waiting.items())},
        "plan": _plan(found.target) if found.target is not None else None,
        "desired_state": _desired(desired) if desired is not None else None,
        "wanted": _wanted(wanted) if wanted is not None else None,
        "outdated": list(found.outdated),
        "replacement": _replacement(found.replacement) if found.replacement is not None else None,
        "failures": {str(consumer): why for consumer, why in found.failures.items()},
        "measured_age_s": rounded(found.facts.measured_age_s),
        "problems": list(found.facts.problems),
        "bad_shares": dict(found.bad_shares),
        "capacity": capacity_values(found.capacity) if found.capacity is not None else None,
        "forced_only": found.forced_only,
        "apply_asked_by": found.request.by if found.request is not None else None,
        "quiet_until": found.quiet_until or None,
        "rscore_left": rounded(found.rscore_left),
    }


def _plan(target: Target) -> dict[str, Any]:
    return {
        "algorithm": target.algorithm,
        "rscore": round(target.rscore, RSCORE_DIGITS),
        "reason": target.reason,
        "time_ms": target.time_ms,
        "capacity_bytes_per_s": target.capacity,
        "spares": list(target.spares),
        "quarantined": list(target.quarantined),
    }


def _desired(desired: DesiredState) -> dict[str, Any]:
    return {"state": str(desired.state), "by": desired.by, "time_ms": desired.time_ms}


def _wanted(wanted: DesiredVersion) -> dict[str, Any]:
    who = {"by": wanted.by, "time_ms": wanted.time_ms}
    return {"version": wanted.version, "config_hash": wanted.config_hash, **who}


def _replacement(wait: ReplacementWait) -> dict[str, Any]:
    return {"waits_for": wait.what, "refused": {str(tp): why for tp, why in sorted(wait.refused.items())}}


def _change(change: Change) -> dict[str, Any]:
    return {
        "time_ms": change.time_ms,
        "reason": change.reason,
        "moved": change.moved,
        "rscore": round(change.rscore, RSCORE_DIGITS),
        "consumers": change.consumers,
        "duration_s": rounded(change.duration_s),
        **{name: rounded(value) for name, value in change.times},
        "iterations": rounded(change.iterations),
    }
