"""`bench capacity`: the paper's conditions. On a broker: tests/system/test_capacity.py."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from bench import capacity_conditions
from bench.capacity_conditions import CONDITIONS, Condition, ConditionResult, ConditionsPlan, run_conditions, widest_gap
from kgs_core.errors import PermanentError
from kgs_core.monitor.speeds.rates import spread
from kgs_core.runtime.capacity_test import CapacityResult, Cycle


def read_at(*rates: float) -> CapacityResult:
    return CapacityResult(tuple(Cycle(1.0, 10, rate, 5, is_full=True) for rate in rates), 10e6, 4, 2, 1)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_partitions_of_a_condition_are_spread_evenly_over_its_tables(condition):
    topics = dict(condition.topics)
    assert (len(topics), sum(topics.values())) == (condition.tables, condition.partitions)
    assert max(topics.values()) - min(topics.values()) <= 1


def test_smaller_conditions_have_as_many_partitions_and_tables():
    assert CONDITIONS[1].scaled(0.1) == Condition("test 2", 10_000_000, 116, 5)


def test_the_gap_is_that_of_the_modes():
    rates = [read_at(2e6, 2e6), read_at(2.5e6, 2.5e6)]
    found = [ConditionResult(CONDITIONS[0], each, spread(each.rates)) for each in rates]
    assert widest_gap(found) == pytest.approx(0.25)


@pytest.fixture
def conditions_run(monkeypatch, tmp_path):
    """Run the conditions with these rates read in them, and a stop while the one of this number is read."""

    def run(rates, stopped_at=None):
        broker, filled, stop = SimpleNamespace(bootstrap_servers="b:1"), [], SimpleNamespace(is_set=False)

        def read(settings, seconds, progress, flag):
            assert all(settings.rule_of(name) for name, _ in filled[-1].topics), "it reads what was written for it"
            assert not any(settings.rule_of(name) for before in filled[:-1] for name, _ in before.topics)
            stop.is_set = len(filled) - 1 == stopped_at
            return read_at(*rates[len(filled) - 1])

        monkeypatch.setattr(capacity_conditions.EmbeddedKafka, "start", lambda *_, **__: nullcontext(broker))
        monkeypatch.setattr(capacity_conditions, "_fill", lambda condition, *_: filled.append(condition))
        monkeypatch.setattr(capacity_conditions, "run_capacity_test", read)
        return list(run_conditions(ConditionsPlan(), tmp_path, lambda _: None, lambda *_: None, stop))

    return run


def test_every_condition_is_written_and_read_one_after_the_other(conditions_run):
    rates = [(1e6, 2e6), (2e6, 3e6), (3e6, 5e6)]
    found = conditions_run(rates)
    assert [each.condition for each in found] == [*CONDITIONS]
    assert [tuple(each.found.rates) for each in found] == rates
    assert [each.rates for each in found] == [spread(each) for each in rates]


def test_a_condition_that_was_stopped_counts_no_more_and_one_without_rates_is_an_error(conditions_run):
    assert len(conditions_run([(1e6, 2e6), (1e6,), ()], stopped_at=1)) == 1
    with pytest.raises(PermanentError, match="test 3: nothing was read in time"):
        conditions_run([(1e6, 2e6), (1e6, 3e6), ()])
