"""What a consumer is to open before anybody lets it go, and what cannot be opened at all."""

from dataclasses import replace

from kgs_core.group.view.reconcile import reconcile
from tests.core.group.controller.group_words import add, at, gives, plan, report, settled, tps


def test_what_is_on_trial_is_pending_and_stays_where_it_is():
    """Who has joined is to open it and to say whether it can; nobody lets go anything for that."""
    view = settled(c1="p", c2="q", c3="")
    found = reconcile(view, plan(c1="p", c2="q"), [1, 2, 3], frozenset(), strict=True, trials={3: tps("q")})
    assert list(found.assignments) == [gives("3a", pending="q")]
    view = add(view, at(12, gives("3a", pending="q")))
    assert not reconcile(view, plan(c1="p", c2="q"), [1, 2, 3], frozenset(), strict=True, trials={3: tps("q")})
    over = reconcile(view, plan(c1="p", c2="q"), [1, 2, 3], frozenset(), strict=True)
    assert list(over.assignments) == [gives("3a")]


def test_who_was_told_to_end_is_tried_with_nothing():
    view = add(settled(c1="p", c3=""), at(12, gives("3a", retire=True)))
    assert not reconcile(view, plan(c1="p"), [1, 3], frozenset(), strict=True, trials={3: tps("p")})


def test_what_stands_still_counts_as_read():
    """A partition that nobody can ever read must not keep every consumer alive that nobody needs."""
    stopped = dict.fromkeys(tps("q"), "Kafka has no such topic or partition")
    still = replace(report("2a", "q", applied=10, sequence=1), stopped=stopped)
    view = add(settled(c1="p", c2="q", c3=""), at(20, still))
    found = reconcile(view, plan(c1="p", c2="q"), [1, 2], frozenset(), strict=True)
    assert list(found.assignments) == [gives("3a", retire=True)]
