"""Lists of items on which next, first and best fit decreasing are at their published worst."""

from collections.abc import Sequence
from fractions import Fraction

NEXT_FIT_DECREASING = 1.6910
FIRST_FIT_DECREASING = BEST_FIT_DECREASING = Fraction(11, 9)
"""Asymptotic performance ratios.

References:
    Landau 2022, section "Approximation Algorithms"; Baker and Coffman 1981; Johnson, Demers, Ullman, Garey and
    Graham 1974.
"""


def next_fit_worst(repeats: int, kinds: int = 4) -> tuple[list[Fraction], int]:
    """Items, in shares of a bin, on which NFD comes near its ratio, and a number of bins that holds them.

    With t_1 = 2 and t_(i+1) = t_i (t_i - 1) + 1, so 2, 3, 7, 43, ..., an item of each kind i is slightly above 1/t_i.
    One of each kind fills a bin, but NFD packs the kinds one after the other, t_i - 1 to a bin: 1 + 1/2 + 1/6 + 1/42 +
    ... bins for each such set.

    Args:
        repeats: items of each kind, and bins that hold all.
        kinds: how many terms of the series.

    References:
        Baker and Coffman 1981, "A tight asymptotic bound for next-fit-decreasing bin-packing".
    """
    terms = [2]
    while len(terms) < kinds:
        terms.append(terms[-1] * (terms[-1] - 1) + 1)
    # what 1/2 + 1/3 + 1/7 + ... leaves of a bin, shared out
    over = (1 - total([Fraction(1, t) for t in terms])) / len(terms)
    return [Fraction(1, t) + over for t in terms for _ in range(repeats)], repeats


def any_fit_worst(repeats: int) -> tuple[list[Fraction], int]:
    """Items on which FFD and BFD take 11 bins where 9 do, and that number of bins.

    Six bins of (1/2 + e, 1/4 + e, 1/4 - 2e) and three of (1/4 + 2e, 1/4 + 2e, 1/4 - 2e, 1/4 - 2e) hold all, each of
    them full. Decreasing fits put 1/4 + 2e beside 1/2 + e, three of 1/4 + e together, and four of 1/4 - 2e: 6 + 2 + 3.

    Args:
        repeats: how many times nine bins.

    References:
        Johnson, Demers, Ullman, Garey and Graham 1974, "Worst-case performance bounds for simple one-dimensional
        packing algorithms".
    """
    e = Fraction(1, 100)
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    sizes = [half + e, quarter + 2 * e, quarter + e, quarter - 2 * e]
    return [size for size, count in zip(sizes, (6, 6, 6, 12), strict=True) for _ in range(count * repeats)], 9 * repeats


def total(items: Sequence[Fraction]) -> Fraction:
    """Their sum, so many bins at least."""
    return sum(items, Fraction(0))
