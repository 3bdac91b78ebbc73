"""Which intents an entry takes: against a plain replay, for whatever they are."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kgs_core.lake.rule.combining import CommitIntent, select

APPS = st.sampled_from("abc")
MOVES = st.dictionaries(APPS, st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(1, 2)), min_size=1)
STORED = st.dictionaries(APPS, st.integers(0, 3))


@st.composite
def intents(draw, looked_at):
    moves = draw(MOVES)
    expected = {app: at for app, (at, _) in moves.items()}
    new = {app: (at or 0) + by for app, (at, by) in moves.items()}
    return CommitIntent(expected, new, (), looked_at=draw(looked_at))


def fits(stored, intent):
    return all(stored.get(app) == at for app, at in intent.expected.items())


def named(found):
    return [(f"i{n}", intent) for n, intent in enumerate(found)]


@given(
    STORED, intents(st.just(0)), st.lists(intents(st.integers(0, 9)), max_size=6), st.integers(0, 9), st.integers(0, 6)
)
def test_taken_one_after_the_other_each_fits(stored, own, others, changed, most):
    own = replace(own, expected={app: stored.get(app) for app in own.expected})
    chosen = select(stored, changed, own, named(others), most)
    by_name = dict(named(others))
    at = {**stored, **own.new}
    for name in chosen.taken:
        assert fits(at, by_name[name])
        assert fits(stored, by_name[name])
        assert by_name[name].looked_at >= changed
        at |= by_name[name].new
    assert len(chosen.taken) <= most
    assert set(chosen.ended) == {name for name, intent in by_name.items() if not fits(stored, intent)}


@given(STORED, st.lists(intents(st.just(5)), max_size=6))
def test_one_that_fits_is_left_only_for_a_conflict(stored, others):
    own = CommitIntent({"z": None}, {"z": 1}, ())
    chosen = select(stored, 5, own, named(others))
    touched = set()
    for name, intent in named(others):
        if name in chosen.taken:
            touched |= intent.new.keys()
        elif fits(stored, intent):
            assert touched & intent.new.keys()


def test_oldest_are_taken_where_there_are_too_many():
    others = [CommitIntent({app: None}, {app: 1}, (), looked_at=1) for app in "abcde"]
    assert select({}, 1, CommitIntent({"z": None}, {"z": 1}, ()), named(others), 3).taken == ["i0", "i1", "i2"]
