"""Claims of the paper, as tests on any scores of the same kind, each with the figures that hold it or refute it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from bench.published import MODIFIED, Score, Scores
from kgs_core.simulation.comparison import pareto_front

BIN_TOLERANCE = 0.001
"""Of CBS: what separates the decreasing fits from each other is the luck of one draw."""
GROWTH_TOLERANCE = 0.05
"""Of E[R]: a step of delta may lower it by so much, one draw being no better known than that."""
_HALF = 0.5
DECREASING = ("bfd", "ffd", "wfd")
FAMILY = {"mwf": ("wf", "wfd"), "mbf": ("bf", "bfd"), "mwfp": ("wf", "wfd"), "mbfp": ("bf", "bfd")}
"""Modified algorithm -> the online and the decreasing version of its fit."""
Row = dict[str, Score]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper.

    Attributes:
        text: what is claimed, with the tolerance.
        holds: whether it does, for scores of deltas above 0 only.
        figures: what it goes by, in words.
    """

    text: str
    holds: Callable[[Scores], bool]
    figures: Callable[[Scores], str]


def _cbs(row: Row, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {row[name][0]:.4f}" for name in names)


def _cost(row: Row, names: Iterable[str]) -> str:
    return ", ".join(f"{name} {row[name][1]:.2f}" for name in names)


def _each(scores: Scores, say: Callable[[Row], str]) -> str:
    return "; ".join(f"delta {delta}: {say(dict(scores[delta]))}" for delta in sorted(scores))


def _worst_cbs(row: Row) -> list[str]:
    return sorted(row, key=lambda name: -row[name][0])


def _cheapest(row: Row) -> list[str]:
    return sorted(row, key=lambda name: row[name][1])


def _bfd_lowest(scores: Scores) -> bool:
    return all(row["bfd"][0] <= min(cbs for cbs, _ in row.values()) + BIN_TOLERANCE for row in scores.values())


def _mbfp_lowest_modified(scores: Scores) -> bool:
    return all(min(MODIFIED, key=lambda name: row[name][0]) == "mbfp" for row in scores.values())


def _mwf_cheapest(scores: Scores) -> bool:
    return all(min(row, key=lambda name: row[name][1]) == "mwf" for row in scores.values())


def _modified_on_front(scores: Scores) -> bool:
    fronts = [set(pareto_front(row)) for row in scores.values()]
    return all({"mwf", "mbf", "mbfp"} <= front for front in fronts) and not all("mwfp" in front for front in fronts)


def _modified_front(row: Row) -> str:
    return ", ".join(name for name in pareto_front(row) if name in MODIFIED)


def _grows(scores: Scores) -> bool:
    for name in (*MODIFIED, *DECREASING):
        costs = [scores[delta][name][1] for delta in sorted(scores)]
        if costs[-1] <= costs[0] or any(b < a * (1 - GROWTH_TOLERANCE) for a, b in pairwise(costs)):
            return False
    return True


def _growth(scores: Scores) -> str:
    first, last = scores[min(scores)], scores[max(scores)]
    return ", ".join(f"{name} {first[name][1]:.2f} to {last[name][1]:.2f}" for name in (*MODIFIED, *DECREASING))


def _nfd_pays_in_bins(scores: Scores) -> bool:
    """Cheaper than the other decreasing fits, and beyond all but NF in consumers."""
    for row in scores.values():
        others = [name for name in row if name not in ("nf", "nfd")]
        if row["nfd"][1] >= min(row[name][1] for name in DECREASING):
            return False
        if row["nfd"][0] <= max(row[name][0] for name in others):
            return False
    return True


def _nfd_figures(row: Row) -> str:
    cheapest = min(DECREASING, key=lambda name: row[name][1])
    return f"E[R] {_cost(row, ['nfd', cheapest])}"


def _next_fits_worst(scores: Scores) -> bool:
    return all(_worst_cbs(dict(row))[:2] == ["nf", "nfd"] for row in scores.values())


def _modified_and_nfd_cheapest(scores: Scores) -> bool:
    return all(set(_cheapest(dict(row))[:5]) == {*MODIFIED, "nfd"} for row in scores.values())


def way_to_decreasing(row: Row, name: str) -> float:
    """How far a modified algorithm's CBS is on the way from the online version of its fit, 0, to the decreasing, 1."""
    online, decreasing = (row[other][0] for other in FAMILY[name])
    return (online - row[name][0]) / (online - decreasing) if online != decreasing else 0.0


def _like_online_then_decreasing(scores: Scores) -> bool:
    first, last = dict(scores[min(scores)]), dict(scores[max(scores)])
    return all(way_to_decreasing(first, name) < _HALF < way_to_decreasing(last, name) for name in MODIFIED)


def _nearer_to_decreasing(scores: Scores) -> bool:
    first, last = dict(scores[min(scores)]), dict(scores[max(scores)])
    return all(way_to_decreasing(first, name) < way_to_decreasing(last, name) for name in ("mwf", "mbf", "mwfp"))


def _ways(scores: Scores) -> str:
    first, last = dict(scores[min(scores)]), dict(scores[max(scores)])
    parts = [f"{n} {_percent(way_to_decreasing(first, n))} to {_percent(way_to_decreasing(last, n))}" for n in MODIFIED]
    return f"way from the online fit to the decreasing one, delta {min(scores)} to {max(scores)}: {', '.join(parts)}"


def _percent(share: float) -> str:
    return f"{round(100 * share):d} %"  # no -0


def _cheapest_modified_worst(scores: Scores) -> bool:
    for row in scores.values():
        cheapest = min(MODIFIED, key=lambda name: row[name][1])
        if cheapest != max(MODIFIED, key=lambda name: row[name][0]):
            return False
    return True


def _cheapest_and_worst(row: Row) -> str:
    cheapest = min(MODIFIED, key=lambda name: row[name][1])
    worst = max(MODIFIED, key=lambda name: row[name][0])
    return f"cheapest {_cost(row, [cheapest])}, worst CBS {_cbs(row, dict.fromkeys((worst, cheapest)))}"


CLAIMS = (
    Claim(
        f"BFD has the lowest CBS at every delta above 0, within {BIN_TOLERANCE:g}",
        _bfd_lowest,
        lambda scores: _each(scores, lambda row: _cbs(row, DECREASING)),
    ),
    Claim(
        "MBFP has the lowest CBS of the modified algorithms",
        _mbfp_lowest_modified,
        lambda scores: _each(scores, lambda row: _cbs(row, sorted(MODIFIED, key=lambda name: row[name][0])[:2])),
    ),
    Claim(
        "MWF has the lowest E[R]",
        _mwf_cheapest,
        lambda scores: _each(scores, lambda row: _cost(row, _cheapest(row)[:2])),
    ),
    Claim(
        "MWF, MBF and MBFP are on the front of the twelve at every delta, MWFP not at every one",
        _modified_on_front,
        lambda scores: _each(scores, _modified_front),
    ),
    Claim(
        f"E[R] grows with delta: higher at the end than at the beginning, no step down by more than "
        f"{GROWTH_TOLERANCE:.0%} (all published but NFD)",
        _grows,
        _growth,
    ),
    Claim(
        "NFD's E[R] is below that of the other decreasing fits, and its CBS above all but NF's",
        _nfd_pays_in_bins,
        lambda scores: _each(scores, _nfd_figures),
    ),
    Claim(
        "NF has the highest CBS, NFD the next",
        _next_fits_worst,
        lambda scores: _each(scores, lambda row: _cbs(row, _worst_cbs(row)[:3])),
    ),
    Claim(
        "the four modified algorithms and NFD have the five lowest E[R]",
        _modified_and_nfd_cheapest,
        lambda scores: _each(scores, lambda row: _cost(row, _cheapest(row)[:6])),
    ),
    Claim(
        "the CBS of each modified algorithm is nearer to the online version of its fit at the smallest delta, and to "
        "the decreasing version at the largest",
        _like_online_then_decreasing,
        _ways,
    ),
    Claim(
        "the CBS of MWF, MBF and MWFP is nearer to the decreasing version at the largest delta than at the smallest",
        _nearer_to_decreasing,
        _ways,
    ),
    Claim(
        "the modified algorithm with the lowest E[R] has the highest CBS of the four",
        _cheapest_modified_worst,
        lambda scores: _each(scores, _cheapest_and_worst),
    ),
)
"""The claims, those of CBS and E[R] of section VI-C last."""
