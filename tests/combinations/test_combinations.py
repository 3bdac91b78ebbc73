"""Any rule, any records, any history: the tables have what a plain loop over all records says, and nothing else.

A case that fails is printed as the code that makes it: put it into an `@example` here, and mend.
"""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings

from tests.combinations.case import Case
from tests.combinations.strategies import cases
from tests.combinations.world import problems_of

SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@pytest.fixture
def judged(tmp_path):
    """A function that carries out a case, and fails where the judge finds something."""

    def judged(case: Case) -> None:
        root = tmp_path / "lake"
        try:
            problems = problems_of(case, root)
        finally:
            shutil.rmtree(root, ignore_errors=True)
        assert problems == [], f"\n{case!r}\n" + "\n".join(problems)

    return judged


@pytest.mark.slow(60)
@given(case=cases())
@settings(max_examples=150, suppress_health_check=SLOW)
def test_any_history_of_any_rule(judged, case):
    judged(case)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
@given(case=cases())
@settings(max_examples=2500, suppress_health_check=SLOW)
def test_ten_thousand_histories(judged, part, case):
    judged(case)
