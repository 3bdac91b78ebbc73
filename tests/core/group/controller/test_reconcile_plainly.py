"""`reconcile` looks at what is out of place only, and comes to what looking at everything comes to."""

from dataclasses import replace
from random import Random

import pytest

from kgs_core.group.protocol import Phase
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.reconcile import reconcile, waiting
from kgs_core.planning.shares import shares_of
from tests.core.group.controller.exploration import explore
from tests.core.group.controller.group_words import at, gives, plan, report
from tests.core.group.controller.plain_reconcile import plain_reconcile
from tests.core.group.controller.small_scope import Scope, first_step, steps
from tests.core.group.controller.test_small_scope import EVERYTHING, HELD, SWAP

LETTERS = "pqrst"


def both(*arguments, **keywords):
    found = reconcile(*arguments, **keywords)
    assert found == plain_reconcile(*arguments, **keywords)
    return found


def some(random):
    return "".join(letter for letter in LETTERS if random.random() < 0.4)


def any_view(random):
    """Up to three incarnations of four consumers, with whatever Assignments and reports."""
    view = GroupView()
    names = random.sample([f"{c}{i}" for c in range(1, 5) for i in "abc"], random.randint(0, 8))
    for offset, name in enumerate(names):
        owned = some(random)
        if random.random() < 0.8:
            phase = random.choice([Phase.READING, Phase.READING, Phase.READING, Phase.ENDED])
            applied = random.choice([None, 10, 20])
            view = view.take_all([at(offset, report(name, owned, applied, 1, phase))], 0.0)
        if random.random() < 0.8:
            given = random.choice([owned, some(random)])
            assignment = gives(name, given, some(random), some(random), retire=random.random() < 0.2)
            view = view.take_all([at(random.choice([5, 10, 20]), assignment)], 0.0)
    return view.bury([name for name in names if random.random() < 0.1])


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_view_it_comes_to_the_same(seed):
    random = Random(seed)
    for _ in range(100):
        view = any_view(random)
        shares = {consumer: set() for consumer in range(1, 5)}
        for letter in some(random):
            shares[random.randint(1, 4)].add(letter)
        desired = plan(**{f"c{consumer}": share for consumer, share in shares.items()})
        suspected = frozenset(i for i in view.members if random.random() < 0.2)
        trials = {random.randint(1, 4): frozenset(plan(c1=some(random)))} if random.random() < 0.3 else None
        wanted = random.sample(range(1, 5), random.randint(0, 4))
        both(view, desired, wanted, suspected, strict=random.random() < 0.5, trials=trials)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_in_any_course_of_events_it_comes_to_the_same(seed, strict):
    scope, random = replace(EVERYTHING, strict=strict, reconcile=both), Random(seed)
    possible = [first_step(scope)]
    for _ in range(120):
        possible = list(steps(scope, random.choice(possible).state))
        if not possible:
            break


@pytest.mark.parametrize("scope", [HELD["another controller takes over a swap"], Scope(SWAP, silences=1)])
def test_in_all_courses_of_a_small_group_it_comes_to_the_same(scope):
    assert explore(replace(scope, reconcile=both)).states > 300


def test_shares_are_those_of_the_assignment_asked_for():
    first, second = plan(c1="pq", c2="r"), plan(c1="p")
    for _ in range(2):
        assert {c: len(share) for c, share in shares_of(first).items()} == {1: 2, 2: 1}
        assert {c: len(share) for c, share in shares_of(second).items()} == {1: 1}


def test_nobody_is_waited_for_where_all_is_reported():
    view = GroupView().take_all([at(1, report("1a", "pq"))], 0.0)
    assert waiting(view, plan(c1="pq")) == ()
    assert [str(each.partition) for each in waiting(view, plan(c1="pqr"))] == ["r:0"]
