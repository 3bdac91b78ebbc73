"""The published scores, and what was claimed of them, as tests on any scores of the same kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from kgs_core.simulation.comparison import pareto_front

Score = tuple[float, float]
"""Cardinal bin score CBS, average Rscore E[R]."""

Scores = Mapping[int, Mapping[str, Score]]
"""Delta -> algorithm -> score."""

NAMES = ("mwf", "mbf", "mbfp", "mwfp", "bfd", "ffd", "wfd", "nfd")
MODIFIED = ("mwf", "mbf", "mwfp", "mbfp")

PUBLISHED_SCORES: Scores = {
    delta: dict(zip(NAMES, row, strict=True))
    for delta, row in {
        0: ((0, 0.04), (0, 0), (0, 0), (0, 0.37), (0, 0), (0, 0), (0, 0), (0.2143, 0)),
        5: ((0.1181, 9.20), (0.0377, 16.04), (0.0016, 23.10), (0.1233, 16.90),
            (0, 24.16), (0.0005, 24.04), (0.0019, 24.12), (0.2380, 20.54)),
        10: ((0.1147, 11.79), (0.0321, 18.88), (0.0034, 24.21), (0.1244, 16.96),
             (0, 25.53), (0.0010, 25.41), (0.0041, 25.24), (0.2409, 21.49)),
        15: ((0.1049, 12.83), (0.0257, 19.88), (0.0019, 24.00), (0.1109, 17.20),
             (0, 25.47), (0.0004, 25.52), (0.0020, 25.34), (0.2240, 20.60)),
        20: ((0.0935, 13.83), (0.0218, 20.61), (0.0015, 23.80), (0.0938, 17.82),
             (0, 25.80), (0.0003, 25.73), (0.0011, 25.47), (0.2090, 19.90)),
        25: ((0.0881, 15.00), (0.0183, 21.48), (0.0014, 24.09), (0.0846, 18.55),
             (0, 26.44), (0.0004, 26.28), (0.0016, 26.21), (0.2058, 19.73)),
    }.items()
}  # fmt: skip
"""Start `uniform`, 200 partitions, 501 measurements, one stream for each delta.

References:
    Landau 2022, section "Modified Any Fit Evaluation", Fig. 6 to 9; the figures are those of its authors' raw data.
"""

BIN_TOLERANCE = 0.001
"""Of CBS: what separates the decreasing fits from each other is the luck of one draw."""
GROWTH_TOLERANCE = 0.05
"""Of E[R]: a step of delta may lower it by so much, one draw being no better known than that."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper.

    Attributes:
        text: what is claimed, with the tolerance.
        holds: whether it does, for scores of deltas above 0 only.
    """

    text: str
    holds: Callable[[Scores], bool]


def _bfd_lowest(scores: Scores) -> bool:
    return all(row["bfd"][0] <= min(cbs for cbs, _ in row.values()) + BIN_TOLERANCE for row in scores.values())


def _mbfp_lowest_modified(scores: Scores) -> bool:
    return all(min(MODIFIED, key=lambda name: row[name][0]) == "mbfp" for row in scores.values())


def _mwf_cheapest(scores: Scores) -> bool:
    return all(min(row, key=lambda name: row[name][1]) == "mwf" for row in scores.values())


def _modified_on_front(scores: Scores) -> bool:
    fronts = [set(pareto_front(row)) for row in scores.values()]
    return all({"mwf", "mbf", "mbfp"} <= front for front in fronts) and not all("mwfp" in front for front in fronts)


def _grows(scores: Scores) -> bool:
    for name in (*MODIFIED, "bfd", "ffd", "wfd"):
        costs = [scores[delta][name][1] for delta in sorted(scores)]
        if costs[-1] <= costs[0] or any(b < a * (1 - GROWTH_TOLERANCE) for a, b in pairwise(costs)):
            return False
    return True


def _nfd_pays_in_bins(scores: Scores) -> bool:
    """Cheaper than the other decreasing fits, and beyond all but NF in consumers."""
    for row in scores.values():
        others = [name for name in row if name not in ("nf", "nfd")]
        if row["nfd"][1] >= min(row[name][1] for name in ("bfd", "ffd", "wfd")):
            return False
        if row["nfd"][0] <= max(row[name][0] for name in others):
            return False
    return True


CLAIMS = (
    Claim(f"BFD has the lowest CBS at every delta above 0, within {BIN_TOLERANCE:g}", _bfd_lowest),
    Claim("MBFP has the lowest CBS of the modified algorithms", _mbfp_lowest_modified),
    Claim("MWF has the lowest E[R]", _mwf_cheapest),
    Claim("MWF, MBF and MBFP are on the front of the twelve at every delta, MWFP not at every one", _modified_on_front),
    Claim(
        f"E[R] grows with delta: higher at the end than at the beginning, no step down by more than "
        f"{GROWTH_TOLERANCE:.0%} (all published but NFD)",
        _grows,
    ),
    Claim("NFD's E[R] is below that of the other decreasing fits, and its CBS above all but NF's", _nfd_pays_in_bins),
)
"""The six claims."""
