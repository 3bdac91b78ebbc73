"""The daily bill in Dagster: a partition for each day, figures that are known only, one line for what fails."""

from dataclasses import replace
from datetime import date, datetime

import dagster as dg
import pytest

from kgs_core.group.view.group_view import GroupView
from kgs_core.lake.topics.kept_bills import KeptBills
from kgs_core.reporting.usage import GroupUsage, Period
from kgs_core.simulation.bill import Bill, Price
from kgs_dagster.assets.bill import bill_asset, make_bill
from kgs_dagster.jobs.bill import bill_job, bill_schedule
from tests.dagster.groups import group
from tests.dagster.results import WHY, failure, figures, recorded, refusing

DAY = "2026-03-04"
USED = GroupUsage((Period(0, 7_200_000),), known_since_ms=0)


def a_bill(usage=None, notes=()):
    return Bill("g", Period(0, 86_400_000), True, 100.0, Price(0.5), usage=usage or GroupUsage(), notes=notes)


def unknown(*_):
    return a_bill()


def definitions(make):
    ours = group()
    job = bill_job(ours)
    return dg.Definitions(assets=[bill_asset(ours, make)], jobs=[job], schedules=[bill_schedule(ours, job)])


def run(instance, make, day=DAY):
    job = definitions(make).resolve_job_def("bill_job")
    return job.execute_in_process(instance=instance, partition_key=day, raise_on_error=False)


def test_a_day_is_billed_and_recorded_as_far_as_it_is_known(instance):
    asked = []

    def make(settings, day):
        asked.append(day)
        return a_bill(USED, ("a word",))

    (event,) = run(instance, make).get_asset_materialization_events()
    assert (asked, event.partition) == ([date(2026, 3, 4)], DAY)
    found = figures(event.materialization)
    assert (found["used_consumer_hours"], found["used_cost"], found["known_h"]) == (2.0, 1.0, 24.0)
    assert found["notes"] == "- a word"
    found = recorded(run(instance, unknown))["bill"]
    assert ("used_consumer_hours" in found, found["known_h"]) == (False, 0)
    assert failure(run(instance, refusing))[1] == WHY


@pytest.mark.parametrize("is_over", [True, False])
def test_a_day_that_is_not_over_by_this_clock_is_neither_kept_nor_made(instance, monkeypatch, tmp_path, is_over):
    """Else it would never be asked for again, and what it lacks be lost for good."""
    settings = group(lake=f"{{root: {tmp_path}}}").settings
    monkeypatch.setattr("kgs_core.runtime.bill.bill_of_group", lambda *_: replace(a_bill(USED), is_over=is_over))
    monkeypatch.setattr("kgs_core.runtime.bill.load_group", lambda _: (None, 0.0, GroupView()))
    assert run(instance, lambda _, day: make_bill(settings, day)).success is is_over
    assert (KeptBills(settings).load(date(2026, 3, 4)) is not None) is is_over


@pytest.fixture
def asked(local_instance):
    """Days that the schedule asks for at a moment, and under which keys."""
    repository = definitions(unknown).get_repository_def()

    def ask(now):
        when = datetime.fromisoformat(f"2026-03-{now}:11:00+00:00")
        with dg.build_schedule_context(local_instance, when, repository_def=repository) as context:
            requests = repository.get_schedule_def("bill_schedule").evaluate_tick(context).run_requests
        return {request.partition_key: request.run_key for request in requests}

    return ask


def test_a_bill_that_failed_is_asked_for_again_while_its_reports_are_kept(asked, local_instance):
    """Kafka was away at night: else that day would never have a bill."""
    first = asked("05T00")
    assert [*first] == [DAY], "no day that the group may not have seen"
    assert run(local_instance, unknown, "2026-03-03").success
    assert not run(local_instance, refusing).success
    again = asked("05T03")
    assert [*again] == [DAY]
    assert again != first, "Dagster takes a key once"
    assert [*asked("06T00")] == ["2026-03-05", DAY]
    assert [*asked("07T00")] == ["2026-03-06", "2026-03-05"], "what is forgotten is no bill"
    assert run(local_instance, unknown).success
    assert [*asked("05T06")] == []


def test_a_bill_that_is_being_made_is_not_asked_for_again(asked, local_instance):
    job = definitions(unknown).resolve_job_def("bill_job")
    status = dg.DagsterRunStatus.STARTED
    local_instance.create_run_for_job(job, status=status, tags={"dagster/partition": DAY})
    assert [*asked("05T03")] == []
