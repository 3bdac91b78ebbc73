"""The classic any fit algorithms: first, best and worst fit, over a shuffled list or from fast to slow.

Only the numbers of the bins know of the current assignment: a new bin is the current consumer of the partition that it
is created for, as Landau 2022, section "Approximation Algorithms Adaptation" has it.
"""

from kgs_core.model import Assignment, ConsumerId
from kgs_core.packing.any_fit.fits import BestFit, FirstFit, WorstFit
from kgs_core.packing.any_fit.open_bins import Fit, OpenConsumers
from kgs_core.packing.basics.problem import PackingProblem, RandomSource, shuffled


def first_fit(problem: PackingProblem, random: RandomSource) -> Assignment:
    """FF: the bin with the lowest number that has room."""
    return _shuffled(problem, _first_fit(problem), random)


def best_fit(problem: PackingProblem, random: RandomSource) -> Assignment:
    """BF: the bin that is filled most tightly."""
    return _shuffled(problem, BestFit(), random)


def worst_fit(problem: PackingProblem, random: RandomSource) -> Assignment:
    """WF: the bin with the most slack."""
    return _shuffled(problem, WorstFit(), random)


def first_fit_decreasing(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """FFD: FF from the fastest partition to the slowest."""
    return _decreasing(problem, _first_fit(problem))


def best_fit_decreasing(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """BFD: BF from the fastest partition to the slowest."""
    return _decreasing(problem, BestFit())


def worst_fit_decreasing(problem: PackingProblem, _random: RandomSource) -> Assignment:
    """WFD: WF from the fastest partition to the slowest."""
    return _decreasing(problem, WorstFit())


def _shuffled(problem: PackingProblem, fit: Fit, random: RandomSource) -> Assignment:
    return OpenConsumers(problem, fit).assign_all(shuffled(problem.free_partitions(), random))


def _decreasing(problem: PackingProblem, fit: Fit) -> Assignment:
    return OpenConsumers(problem, fit).assign_all(problem.decreasing(problem.free_partitions()))


def _first_fit(problem: PackingProblem) -> FirstFit:
    # at most one bin a partition, so that "the lowest free number" never goes beyond this
    lowest = range(1, len(problem.speeds) + len(problem.not_new) + 1)
    return FirstFit(sorted({*problem.current.values(), *problem.spares, *map(ConsumerId, lowest)}))
