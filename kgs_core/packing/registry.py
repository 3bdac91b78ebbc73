"""All packing algorithms under their short names: the one place that knows which there are."""

import re
import warnings
from collections import UserDict
from typing import Final

from kgs_core.errors import ConfigError
from kgs_core.model import Assignment
from kgs_core.packing.any_fit.classic import (
    best_fit,
    best_fit_decreasing,
    first_fit,
    first_fit_decreasing,
    worst_fit,
    worst_fit_decreasing,
)
from kgs_core.packing.any_fit.modified import (
    modified_best_fit,
    modified_best_fit_partition,
    modified_worst_fit,
    modified_worst_fit_partition,
)
from kgs_core.packing.any_fit.next_fit import next_fit, next_fit_decreasing
from kgs_core.packing.any_fit.sticky_eviction import sticky_eviction
from kgs_core.packing.basics.problem import DEFAULT_CONSUMER_WEIGHT, PackFunction, PackingProblem, RandomSource
from kgs_core.packing.custom import installed_algorithms


def _search(problem: PackingProblem, random: RandomSource) -> Assignment:
    from kgs_core.packing.search.packer import search  # compiled code: half a second that only those pay who search

    return search(problem, random)


class AlgorithmTable(UserDict[str, PackFunction]):
    """Table of algorithms by name; those that packages bring are added at the first look, not at import."""

    def __init__(self, own: dict[str, PackFunction]) -> None:
        self._table = own
        self._is_whole = False

    @property
    def data(self) -> dict[str, PackFunction]:  # type: ignore[override]
        """All of them."""
        if not self._is_whole:
            self._is_whole = True
            for name, pack in installed_algorithms():
                try:
                    register(name, pack)
                except ConfigError as e:  # nobody who asks for another one must fail for it
                    warnings.warn(f"entry point of kgs.algorithms: {e}", stacklevel=3)
        return self._table


OWN: dict[str, PackFunction] = {
    "nf": next_fit,
    "ff": first_fit,
    "bf": best_fit,
    "wf": worst_fit,
    "nfd": next_fit_decreasing,
    "ffd": first_fit_decreasing,
    "bfd": best_fit_decreasing,
    "wfd": worst_fit_decreasing,
    "mwf": modified_worst_fit,
    "mbf": modified_best_fit,
    "mwfp": modified_worst_fit_partition,
    "mbfp": modified_best_fit_partition,
    "keep": sticky_eviction,
    "search": _search,
}
"""kgs's own, which can pack consumers of several classes, too."""
ALGORITHMS = AlgorithmTable(dict(OWN))
"""Short name -> algorithm, in the order in which comparisons list them. `register` adds to it, and so does the entry
point group `kgs.algorithms` of an installed package."""

WEIGHING = {"keep", "search"}
"""Those that weigh consumers against moves, so that they can be given a setting, as in `search@0.9`."""

MAX_CONSUMER_WEIGHT = 1000.0
FEWEST: Final = "fewest"
FRONT: tuple[float | None, ...] = (None, 8.0, 4.0, 3.4, 2.8, 2.0, 1.3, 1.0, 0.8, 0.6, 0.45, 0.3)
"""A sweep of `consumer_weight` from the fewest consumers to the fewest moves."""


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # @ begins a setting; commas and | stand between names elsewhere
_ALL = "all"


def register(name: str, pack: PackFunction, *, weighs: bool = False) -> None:
    """Add an algorithm to those that settings, commands and `pack` take by name.

    Args:
        name: a letter, then letters, digits, _ and -. One that was registered before is replaced.
        pack: what packs; it must be a function of its arguments alone.
        weighs: whether it heeds `consumer_weight`, so that it can be given a setting, as in `search@0.9`.

    Raises:
        ConfigError: a name that cannot be, or is that of one of kgs's own algorithms.
    """
    if not _NAME.fullmatch(name) or name == _ALL:
        raise ConfigError([f"algorithm '{name}': no name for one: give a letter, then letters, digits, _ and -"])
    if name in OWN:
        raise ConfigError([f"algorithm '{name}': kgs has one of this name: give another name"])
    ALGORITHMS[name] = pack
    (WEIGHING.add if weighs else WEIGHING.discard)(name)


def setting_name(algorithm: str, consumer_weight: float | None) -> str:
    """`search@0.9`, or `search@fewest`."""
    return f"{algorithm}@{FEWEST if consumer_weight is None else f'{consumer_weight:g}'}"


def front_of(algorithm: str, *but: float | None) -> list[str]:
    """Names of an algorithm's settings along `FRONT`, without those of some weights."""
    return [setting_name(algorithm, consumer_weight) for consumer_weight in FRONT if consumer_weight not in but]


def parse_name(name: str) -> tuple[str, float | None] | None:
    """Algorithm and `consumer_weight` that a name means; None: it means none."""
    algorithm, at, setting = name.partition("@")
    if algorithm not in ALGORITHMS or (at and algorithm not in WEIGHING):
        return None
    if not at:
        return algorithm, DEFAULT_CONSUMER_WEIGHT
    if setting == FEWEST:
        return algorithm, None
    try:
        consumer_weight = float(setting)
    except ValueError:
        return None
    return (algorithm, consumer_weight) if 0 < consumer_weight <= MAX_CONSUMER_WEIGHT else None
