"""What steps of packing cost at least, proven by a constraint solver: the yardstick for the packers.

Speeds are whole per cents of C, and so is all that is counted here.
"""

from dataclasses import dataclass

from ortools.sat.python import cp_model

from kgs_core.model import ConsumerId

FULL = 100
PATIENCE_S = 120.0
"""Far more than it takes: the solver's end must not depend on how fast the machine is."""


@dataclass(frozen=True)
class Optimum:
    """`proven`: no plan costs less, and `known` is no lie. `plans`: an assignment for each step."""

    proven: bool
    cost: int
    plans: list


def least_cost(current, measurements, consumer_weight, known):
    """Least `consumer_weight` x consumers + moved speed, over all measurements, each of which is known from the start.

    Args:
        known: what some plan costs; it bounds the cost, and the consumers that can be of use.
    """
    fewest = [_fewest(speeds) for speeds in measurements]
    extra = known // consumer_weight - sum(fewest)
    return _solved(current, measurements, consumer_weight, known, [least + extra for least in fewest])


def least_moved(problem, consumers, known):
    """Least moved speed with at most so many consumers."""
    return _solved(problem.current, [problem.speeds], 0, known, [consumers])


def _total(speeds):
    return sum(map(round, speeds.values()))


def _fewest(speeds):
    """No packing has fewer consumers.

    References:
        Martello and Toth 1990, "Lower bounds and reduction procedures for the bin packing problem", L2.
    """
    sizes = sorted(map(round, speeds.values()))
    least = 0
    for small in range(FULL // 2 + 1):
        alone = sum(s > FULL - small for s in sizes)
        large = [s for s in sizes if FULL < 2 * s <= 2 * (FULL - small)]
        rest = sum(s for s in sizes if small <= s and 2 * s <= FULL) - (FULL * len(large) - sum(large))
        least = max(least, alone + len(large) + max(0, -(-rest // FULL)))
    return least


def _solved(current, measurements, consumer_weight, known, most):
    """Integer program: x[p, b] is whether bin b has partition p after a step, for each of the steps.

    Bins are the current consumers, then nameless ones. One that opens takes the place of a closed one at no cost, so
    there need be no more bins than are open at once.
    """
    model, named = cp_model.CpModel(), sorted(set(current.values()))
    bins = range(max(len(named), *most))
    was = {(p, b): named[b] == home for p, home in current.items() for b in range(len(named))}
    total, steps, opened = 0, [], []
    for speeds, bound in zip(measurements, most, strict=True):
        x = {(p, b): model.new_bool_var("") for p in speeds for b in bins}
        opened.append(_fit(model, x, speeds, bins, bound))
        _open_in_turn(model, opened, range(len(named), len(bins)))
        stays = sum(round(speeds[p]) * _both(model, before, x[p, b]) for (p, b), before in was.items())
        total += consumer_weight * sum(opened[-1]) + _total(speeds) - stays
        steps.append(x)
        was = x
    model.add(total <= known)  # makes the proof three times as fast
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2  # twice as fast here
    solver.parameters.max_time_in_seconds = PATIENCE_S
    if solver.solve(model) != cp_model.OPTIMAL:
        return Optimum(proven=False, cost=0, plans=[])
    names = [*named, *(ConsumerId(named[-1] + 1 + i) for i in range(len(bins) - len(named)))]
    plans = [{p: names[b] for (p, b), chosen in x.items() if solver.boolean_value(chosen)} for x in steps]
    return Optimum(proven=True, cost=round(solver.objective_value), plans=plans)


def _fit(model, x, speeds, bins, most):
    """Every partition at one bin, none above capacity; returns which bins are open."""
    is_open = [model.new_bool_var("") for _ in bins]
    for p in speeds:
        model.add_exactly_one(x[p, b] for b in bins)
    for b in bins:
        model.add(sum(round(speed) * x[p, b] for p, speed in speeds.items()) <= FULL * is_open[b])
        model.add_at_most_one(x[p, b] for p, speed in speeds.items() if 2 * speed > FULL)
        for p in speeds:
            model.add_implication(x[p, b], is_open[b])
    model.add(sum(is_open) <= most)
    model.add(sum(is_open) >= _fewest(speeds))
    return is_open


def _open_in_turn(model, opened, nameless):
    """A nameless bin opens for the first time only where all before it are open: they are all alike."""
    *before, now = opened
    for b in nameless:
        for lower in now[:b]:
            model.add(now[b] <= lower + sum(is_open[b] for is_open in before))


def _both(model, before, after):
    if isinstance(before, bool):
        return after if before else 0
    both = model.new_bool_var("")
    model.add_implication(both, before)
    model.add_implication(both, after)
    return both
