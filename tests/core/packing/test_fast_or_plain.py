"""The two forms of the published algorithms and of `keep`: the same to the last bit, compiled only where it pays."""

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.packing import ALGORITHMS, PackingProblem
from kgs_core.packing.fast_or_plain import LARGE, FastOrPlain
from kgs_core.simulation.comparison import PUBLISHED
from tests.core.packing import reference

TWO_FORMS = {name: pack for name, pack in ALGORITHMS.items() if isinstance(pack, FastOrPlain)}
CAPACITY = 100
LIMITS = settings(max_examples=60, deadline=None)  # the first example compiles

partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 30))
speeds = (
    st.integers(0, 130)
    | st.floats(0, 130)
    | st.sampled_from([0, -0.0, 10, 100 / 3, 50, 100, 120])  # equal ones, nothing, exactly full, too fast
    | st.floats(0, 5)
)
consumers = st.builds(ConsumerId, st.integers(1, 12) | st.sampled_from([70, 90_000]))


@st.composite
def problems(draw):
    loads = draw(st.dictionaries(partitions, speeds, max_size=50))
    current = draw(st.dictionaries(st.sampled_from(sorted(loads)) | partitions if loads else partitions, consumers))
    quarantined = draw(st.frozensets(consumers, max_size=3))
    able = sorted(p for p in loads if p in current and current[p] not in quarantined)
    least = draw(st.integers(0, 8))
    consumer_weight = draw(st.none() | st.sampled_from([0.1, 0.5, 1.3]))
    return PackingProblem(
        loads,
        CAPACITY,
        current,
        pinned=draw(st.frozensets(st.sampled_from(able), max_size=8)) if able else frozenset(),
        spares=draw(st.frozensets(consumers, max_size=3)),
        quarantined=quarantined,
        min_consumers=least,
        max_consumers=draw(st.none() | st.integers(max(1, least), 10)),
        consumer_weight=consumer_weight,
    )


def large(seed, size, draw_speed, **options):
    """So many partitions that best fit keeps its bins in several blocks."""
    random = Random(seed)
    loads = {TopicPartition("t", n): draw_speed(random) for n in range(size)}
    current = {p: ConsumerId(random.randint(1, size // 2)) for p in loads if random.random() < 0.8}
    return PackingProblem(loads, CAPACITY, current, **options)


def test_the_twelve_published_ones_and_keep_have_two_forms():
    assert tuple(TWO_FORMS) == (*PUBLISHED, "keep")


@pytest.mark.parametrize("name", TWO_FORMS)
@LIMITS
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_both_forms_agree(name, problem, seed):
    pack = TWO_FORMS[name]
    assert pack.fast(problem, Random(seed)) == pack.plain(problem, Random(seed))


@pytest.mark.parametrize("name", TWO_FORMS)
@pytest.mark.parametrize(
    "draw_speed",
    [
        lambda random: random.uniform(0, 120),
        lambda random: random.randint(0, 100),
        lambda random: random.choice([0, 0.1, 0.2, 0.3]),
        lambda _random: 60.0,
    ],
    ids=["any", "whole", "tiny", "alike"],
)
def test_both_forms_agree_on_many_partitions(name, draw_speed):
    pack = TWO_FORMS[name]
    for options in ({}, {"max_consumers": 300}, {"quarantined": frozenset(map(ConsumerId, range(1, 900, 7)))}):
        problem = large(1, 2000, draw_speed, **options)
        assert pack.fast(problem, Random(1)) == pack.plain(problem, Random(1))


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("seed", range(5))
def test_the_compiled_form_agrees_with_plain_lists(name, seed, in_order):
    problem = large(seed, 60, lambda random: random.randint(0, 120))
    expected = {p: number for number, held in reference.pack(name, problem).items() for p in held}
    assert TWO_FORMS[name].fast(problem, in_order) == expected


@pytest.mark.parametrize(("size", "compiled"), [(LARGE - 1, False), (LARGE, True)])
def test_numba_is_loaded_for_large_problems_only(size, compiled):
    """To import it takes most of a second, which a small problem's process must not pay."""
    program = (
        "import sys; from random import Random\n"
        "from kgs_core.model import TopicPartition\n"
        "from kgs_core.packing import ALGORITHMS, PackingProblem\n"
        f"speeds = {{TopicPartition('t', n): n % 90 for n in range({size})}}\n"
        "ALGORITHMS['mwf'](PackingProblem(speeds, 100, {}), Random(1))\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == str(compiled)
