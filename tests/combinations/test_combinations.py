"""Any rule, any records, any history: the tables have what a plain loop over all records says, and nothing else.

A case that fails is printed as the code that makes it: put it into `FOUND`, and mend.
"""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings

from tests.combinations.case import (
    ADDED,
    Accept,
    Case,
    Change,
    Erase,
    MakeAgain,
    Materialize,
    Record,
    Registry,
    Round,
    Rule,
    Send,
    Thaw,
)
from tests.combinations.strategies import LETTER, cases
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


FOUND = [
    # A registry that forgets: lost, and both row and dead letter
    Case(
        Rule("avro", named=True),
        (Send((Record(), Record("broken"))), Round(until=LETTER), Registry("forgets 1"), Round()),
    ),
    Case(
        Rule("avro", named=True),
        (Registry("forgets 1"), Send((Record(),)), Round(), Round(until="written"), Registry(), Round(), Thaw()),
    ),
    # Records that were fetched of a topic that was deleted
    Case(Rule("raw"), (Send((Record(),)), Round(waits=True), MakeAgain(), Accept(), Send((Record(),)), Round())),
    # Tombstones where a null value is no bad record, or not the only fault
    Case(Rule("string", newest="remove"), (Send((Record(), Record("tombstone"))),)),
    Case(Rule("string", newest="ignore"), (Send((Record(), Record("tombstone"))),)),
    Case(Rule(newest="remove"), (Send((Record(), Record("odd tombstone"))),)),
    # A number that no decimal takes, in its column and beside it
    Case(Rule(), (Send((Record("long"),)),)),
    Case(Rule(), (Send((Record("long beside"), Record("broken"))),)),
    # A nested column that comes into a derived table
    *(
        Case(Rule(evolve="add_columns", newest="ignore", added=kind), (Send((Record(),)), Round(), Change()))
        for kind in ADDED
    ),
    # A topic that is deleted while a batch is half committed: its dead letters stay, the rest was read by nobody
    Case(Rule(shared=True), (Send((Record(key="k2"), Record("wrong p", key="k2"))), Round(until=LETTER), MakeAgain())),
    # Records without a value whose key is not in their columns: nothing is deleted by them, or Kafka's key is enough
    Case(
        Rule(newest="ignore", order="timestamp", by="s", changes=True), (Send((Record(), Record("tombstone"))), Round())
    ),
    Case(Rule(newest="remove", shared=True, changes=True), (Send((Record(), Record("tombstone"))), Round())),
    # A row that is redriven behind its delete, whose last values it has
    Case(Rule(newest="column"), (Send((Record("wrong p"), Record("tombstone"))), Round(), Materialize(), Change())),
    # Deletes of a row that was never there, of which the later one has other values
    Case(
        Rule("raw", key="string", newest="column"),
        (Send((Record("odd tombstone"),)), Round(), Materialize(), Send((Record("tombstone"),))),
    ),
    # A person's key, of which the table has a hash
    Case(Rule("raw", mask=(("_key", "hash"),)), (Send((Record(),)), Round(), Erase())),
    # Another rule while a batch is half committed
    Case(Rule(), (Send((Record("wrong p"),)), Round(until=LETTER), Change())),
]
"""What was once a fault, made as small as it gets."""


@pytest.mark.parametrize("case", FOUND, ids=range(len(FOUND)))
def test_what_was_found(judged, case):
    judged(case)


@pytest.mark.slow(60)
@given(case=cases())
@settings(max_examples=60, derandomize=True, suppress_health_check=SLOW)
def test_any_history_of_any_rule(judged, case):
    judged(case)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(4))
@given(case=cases())
@settings(max_examples=2500, suppress_health_check=SLOW)
def test_ten_thousand_histories(judged, part, case):
    judged(case)
