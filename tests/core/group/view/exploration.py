"""Every state that a small group can reach: whether one is wrong, and whether from each it comes to rest."""

from dataclasses import dataclass

from kgs_core.group.view.reconcile import converged
from tests.core.group.view.small_scope import Scope, State, Step, first_step, steps


@dataclass(frozen=True)
class Explored:
    """What was found; empty `wrong` and `stuck`: the rules hold. `way` leads to the first thing that is wrong."""

    states: int
    wrong: tuple[str, ...]
    stuck: tuple[str, ...] = ()
    way: tuple[Step, ...] = ()


def explore(scope: Scope, *, first_wrong: bool = False) -> Explored:
    """Every state that can be reached, breadth first.

    Wrong is a state with two owners, or a step that must not be. Stuck is a state from which the group, left alone,
    does not come to rest with current = target.
    """
    first = first_step(scope)
    numbers: dict[object, int] = {first.state.key(): 0}
    reached: list[tuple[int, Step]] = [(-1, first)]
    rests: list[int | None] = []
    at_rest = set()
    wrong: list[tuple[str, tuple[Step, ...]]] = []
    for number, (_, here) in enumerate(reached):
        ahead: dict[int, int] = {}
        for step in steps(scope, here.state):
            after = numbers.setdefault(step.state.key(), len(reached))
            if after == len(reached):
                reached.append((number, step))
            if step.rank is not None and after != number:
                ahead.setdefault(step.rank, after)
            problem = step.wrong or "; ".join(step.state.double_owners())
            if problem:
                way = (*_way(reached, number), step)
                wrong.append((f"{problem} after {_named(way)}", way))
                if first_wrong:
                    return Explored(len(reached), (wrong[0][0],), (), way)
        rests.append(ahead[min(ahead)] if ahead else None)
        if not ahead and _is_right(scope, here.state):
            at_rest.add(number)
    stuck = tuple(_named(_way(reached, number)) for number in _never_at_rest(rests, at_rest))
    return Explored(len(reached), tuple(text for text, _ in wrong), stuck, wrong[0][1] if wrong else ())


def _is_right(scope: Scope, state: State) -> bool:
    plan = scope.plans[-1]
    owned = {p: life.member.consumer for life in state.lives if life.alive for p in life.owned}
    return owned == plan and converged(state.controllers[-1], plan, state.log.target.message.consumers)


def _way(reached: list[tuple[int, Step]], number: int) -> tuple[Step, ...]:
    way: list[Step] = []
    while number >= 0:
        number, step = reached[number]
        way.append(step)
    return tuple(reversed(way))


def _named(way: tuple[Step, ...]) -> str:
    return " > ".join(step.name for step in way[1:])


def _never_at_rest(rests: list[int | None], at_rest: set[int]) -> list[int]:
    """States whose way ahead ends elsewhere, or goes round for ever."""
    good, bad = set(at_rest), set()
    for number in range(len(rests)):
        way: dict[int, None] = {}
        here: int | None = number
        while here is not None and here not in good and here not in bad and here not in way:
            way[here] = None
            here = rests[here]
        (good if here in good else bad).update(way)
    return sorted(bad)
