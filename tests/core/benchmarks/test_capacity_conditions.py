"""`kgs bench capacity`: the paper's conditions, their order, and what is shown of them; reading is the test's own."""

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from kgs_core.adapters.system.shutdown import StopFlag
from kgs_core.benchmarks import capacity_conditions
from kgs_core.benchmarks.capacity import CapacityResult, Cycle
from kgs_core.benchmarks.capacity_conditions import (
    CONDITIONS,
    Condition,
    ConditionResult,
    ConditionsPlan,
    run_conditions,
    widest_gap,
)
from kgs_core.cli.bench.capacity_conditions import density_chart, print_result
from kgs_core.monitor.rates import spread


def result(name: str, *rates: float) -> ConditionResult:
    cycles = tuple(Cycle(1.0, 10, rate, 5, is_full=True) for rate in rates)
    return ConditionResult(Condition(name, 10, 4, 2), CapacityResult(cycles, 10e6, 4, 2, 1), spread(rates))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_partitions_of_a_condition_are_spread_evenly_over_its_tables(condition):
    topics = dict(condition.topics)
    assert (len(topics), sum(topics.values())) == (condition.tables, condition.partitions)
    assert max(topics.values()) - min(topics.values()) <= 1


def test_smaller_conditions_have_as_many_partitions_and_tables():
    assert CONDITIONS[1].scaled(0.1) == Condition("test 2", 10_000_000, 116, 5)


def test_every_condition_is_filled_and_read_with_the_same_settings(monkeypatch):
    filled, read = [], []

    @contextmanager
    def broker(folder, log):
        yield SimpleNamespace(bootstrap_servers="localhost:1")

    def reads(settings, seconds, progress, stop):
        read.append((settings.topics[0].pattern, settings.consumer.batch_bytes, seconds))
        return result("", 1e6 * len(read)).found

    monkeypatch.setattr(capacity_conditions, "EmbeddedKafka", SimpleNamespace(start=broker))
    monkeypatch.setattr(capacity_conditions, "_fill", lambda condition, *_: filled.append(condition))
    monkeypatch.setattr(capacity_conditions, "run_capacity_test", reads)
    plan = ConditionsPlan(seconds=3.0, batch_bytes=7_000_000)
    found = list(run_conditions(plan, Path("/nowhere"), lambda _: None, lambda *_: None, StopFlag()))
    assert [each.condition for each in found] == filled == [*CONDITIONS]
    assert len({pattern for pattern, *_ in read}) == len(CONDITIONS)
    assert [settings for _, *settings in read] == [[7_000_000, 3.0]] * len(CONDITIONS)
    assert [each.rates.mode for each in found] == pytest.approx([1e6, 2e6, 3e6])


def test_modes_are_compared(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    results = [result("one", 2e6, 2e6), result("two", 2.5e6, 2.5e6)]
    assert widest_gap(results) == pytest.approx(0.25)
    print_result(results)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["one", "10", "2.50", "4", "2", "2", "2.0", "2.0", "2.0"]
    assert lines[-1] == "The highest mode is 25% above the lowest."


def test_chart_has_a_line_for_each_condition_in_mb():
    chart = density_chart([result("one", 2e6, 2.2e6, 2.4e6), result("two", 3e6, 3.1e6, 3.3e6)])
    assert list(chart.lines) == ["one", "two"]
    rate, _ = max(chart.lines["one"], key=lambda point: point[1])
    assert 2.0 <= rate <= 2.4
