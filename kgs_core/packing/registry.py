"""All packing algorithms under their short names."""

from collections.abc import Mapping
from types import MappingProxyType

from kgs_core.packing.any_fit import (
    best_fit,
    best_fit_decreasing,
    first_fit,
    first_fit_decreasing,
    worst_fit,
    worst_fit_decreasing,
)
from kgs_core.packing.modified_any_fit import (
    modified_best_fit,
    modified_best_fit_partition,
    modified_worst_fit,
    modified_worst_fit_partition,
)
from kgs_core.packing.next_fit import next_fit, next_fit_decreasing
from kgs_core.packing.problem import PackFunction

ALGORITHMS: Mapping[str, PackFunction] = MappingProxyType(
    {
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
    }
)
"""Short name -> algorithm, in the order in which comparisons list them."""
