"""Rows that end: what is left is what a plain loop leaves, the audit says exactly what ended by whom, and finds what is
lost besides, whatever goes on at the same time, and wherever it is killed."""

from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.lake.ending_world import KEYS, PARTITIONS, EndingWorld, patched

POINTS = ("end-noted", "redrives-refused", "rows-rewritten", "append-only-off", "rows-removed", "latest-read")
LAYOUTS = ({}, {"partition_by": ["hour(_timestamp)"]})


INGEST = st.tuples(st.just("ingest"), st.fixed_dictionaries({
    "partition": st.integers(0, PARTITIONS - 1), "count": st.integers(1, 12),
}))  # fmt: skip
BESIDE = st.one_of(INGEST, st.tuples(st.sampled_from(["redrive", "maintain"]), st.just({})))
ENDING = st.one_of(
    st.tuples(st.just("erase"), st.fixed_dictionaries({"k": st.sampled_from([f"k{n}" for n in range(KEYS)])})),
    st.tuples(st.just("erase"), st.fixed_dictionaries({"below": st.integers(1, 30)})),
    st.tuples(st.just("keep"), st.fixed_dictionaries({"hours": st.integers(1, 40)})),
)
ALONE = st.just(""), st.none()
STEPS = st.lists(
    st.one_of(
        st.tuples(INGEST, *ALONE),
        st.tuples(st.tuples(st.sampled_from(["redrive", "maintain", "materialize"]), st.just({})), *ALONE),
        st.tuples(ENDING, st.sampled_from(POINTS[:-1]), st.one_of(st.none(), BESIDE)),
        st.tuples(ENDING, st.just(POINTS[-1]), st.none()),
        st.tuples(ENDING, *ALONE),
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=7, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=st.sampled_from(LAYOUTS), begins=st.integers(5, 20), steps=STEPS)
def test_it_is_as_a_plain_loop_says(monkeypatch, killer, layout, begins, steps):
    with TemporaryDirectory() as root, monkeypatch.context() as patch:
        patched(patch)
        world = EndingWorld(root, layout)
        world.ingest(0, begins)
        for step, point, beside in steps:
            world.before(step)
            if point:
                killer[point] = 1 if beside is None else lambda beside=beside: world.do(beside)
            world.do(step)
            killer.clear()
        world.judge()
