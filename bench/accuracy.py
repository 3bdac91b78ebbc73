"""Accuracy of speeds against a load that is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class AccuracyPoint:
    """One measurement beside the truth, bytes/s.

    Attributes:
        time_s: since the start of the load.
        window: what was really written, on average over the same window.
        last_second: what was really written in the second before.
    """

    time_s: float
    measured: float
    window: float
    last_second: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Errors are shares of the truth over the same window.

    Attributes:
        settled_s: from the change of the load until the speed is within 5 % of the new one and stays there; None: it
            does not, or nothing changes.
        steady_mean, steady_max: absolute errors while the load does not change and the window saw no change.
    """

    settled_s: float | None
    steady_mean: float
    steady_max: float


def accuracy(points: Sequence[AccuracyPoint], window_s: float, change: tuple[float, float] | None) -> Accuracy:
    """What `points`, at least one and in order of time, say of the measurements.

    Args:
        points: only such with a speed.
        window_s: length of the window.
        change: when the load begins to change and when it has its new speed; None: it is the same all the time.
    """
    errors = [(p.time_s, abs(p.measured - p.window) / p.window) for p in points if p.window > 0]
    begins, ends = change or (float("inf"), float("inf"))
    steady = [error for t, error in errors if t < begins or t > ends + window_s]
    return Accuracy(
        _settled(points, window_s, ends) if change is not None else None,
        fmean(steady or [0.0]),
        max(steady, default=0.0),
    )


def _settled(points: Sequence[AccuracyPoint], window_s: float, ends: float) -> float | None:
    """The new speed is what was really written over the last window."""
    target = points[-1].window
    settled: float | None = None
    for point in points:
        if point.time_s < ends:
            continue
        if abs(point.measured - target) > TOLERANCE * target:
            settled = None
        elif settled is None:
            settled = point.time_s - ends
    return settled if points[-1].time_s >= ends + window_s else None
