"""The daily bill in Dagster: a partition for each day, figures that are known only, one line for what fails."""

from dataclasses import replace
from datetime import date, datetime

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_core.group.view.group_view import GroupView
from kgs_core.lake.topics.kept_bills import KeptBills
from kgs_core.reporting.usage import GroupUsage, Period
from kgs_core.simulation.bill import Bill, Price
from kgs_dagster.assets.bill import bill_asset, make_bill
from kgs_dagster.jobs.bill import bill_job, bill_schedule
from tests.dagster.groups import group


def a_bill(usage, notes=()):
    return Bill("g", Period(0, 86_400_000), True, 100.0, Price(0.5), usage=usage, notes=notes)


def run(instance, make, day="2026-03-04"):
    ours = group()
    defs = dg.Definitions(assets=[bill_asset(ours, make)], jobs=[bill_job(ours)])
    job = defs.resolve_job_def("bill_job")
    return job.execute_in_process(instance=instance, partition_key=day, raise_on_error=False)


def test_a_day_is_billed_and_recorded(instance):
    asked = []

    def make(settings, day):
        asked.append(day)
        return a_bill(GroupUsage((Period(0, 7_200_000),), known_since_ms=0), ("a word",))

    done = run(instance, make)
    assert asked == [date(2026, 3, 4)]
    (event,) = done.asset_materializations_for_node(done.job_def.graph.node_defs[0].name)
    assert event.partition == "2026-03-04"
    found = {name: value.value for name, value in event.metadata.items()}
    assert (found["used_consumer_hours"], found["used_cost"], found["known_h"]) == (2.0, 1.0, 24.0)
    assert found["notes"] == "- a word"


def test_what_is_not_known_is_not_there(instance):
    done = run(instance, lambda *_: a_bill(GroupUsage()))
    (event,) = done.asset_materializations_for_node(done.job_def.graph.node_defs[0].name)
    assert "used_consumer_hours" not in event.metadata
    assert event.metadata["known_h"].value == 0


def test_kafka_away_is_one_line(instance):
    def make(*_):
        raise TransientError("Kafka b:9: no answer")

    done = run(instance, make)
    (failure,) = [event for event in done.all_events if event.is_step_failure]
    assert failure.step_failure_data.user_failure_data.description == "Kafka b:9: no answer"


@pytest.mark.parametrize("is_over", [True, False])
def test_a_day_that_is_not_over_by_this_clock_is_neither_kept_nor_made(instance, monkeypatch, tmp_path, is_over):
    """Else it would never be asked for again, and what it lacks be lost for good."""
    settings = group().settings
    settings = settings.model_copy(update={"lake": settings.lake.model_copy(update={"root": str(tmp_path)})})
    found = replace(a_bill(GroupUsage((Period(0, 7_200_000),), known_since_ms=0)), is_over=is_over)
    monkeypatch.setattr("kgs_core.runtime.bill.bill_of_group", lambda *_: found)
    monkeypatch.setattr("kgs_core.runtime.bill.load_group", lambda _: (None, 0.0, GroupView()))
    done = run(instance, lambda _, day: make_bill(settings, day))
    assert done.success is is_over
    assert (KeptBills(settings).load(date(2026, 3, 4)) is not None) is is_over


@pytest.fixture
def asked(local_instance):
    """Days that the schedule asks for at a moment."""

    def ask(now):
        ours = group()
        job = bill_job(ours)
        defs = dg.Definitions(assets=[bill_asset(ours)], jobs=[job], schedules=[bill_schedule(ours, job)])
        repository = defs.get_repository_def()
        with dg.build_schedule_context(
            local_instance, datetime.fromisoformat(now), repository_def=repository
        ) as context:
            requests = repository.get_schedule_def("bill_schedule").evaluate_tick(context).run_requests
        return {request.partition_key: request.run_key for request in requests}

    return ask


def fail(*_):
    raise TransientError("Kafka b:9: no answer")


def test_yesterday_is_asked_for_every_day_and_no_day_that_the_group_may_not_have_seen(asked):
    assert [*asked("2026-03-05T00:11:00+00:00")] == ["2026-03-04"]


def test_a_bill_that_failed_is_asked_for_again_while_its_reports_are_kept(asked, local_instance):
    """Kafka was away at night: else that day would never have a bill."""
    assert run(local_instance, lambda *_: a_bill(GroupUsage()), "2026-03-03").success
    first = asked("2026-03-05T00:11:00+00:00")
    assert not run(local_instance, fail, "2026-03-04").success
    again = asked("2026-03-05T03:11:00+00:00")
    assert [*again] == ["2026-03-04"]
    assert again != first, "Dagster takes a key once"
    assert [*asked("2026-03-06T00:11:00+00:00")] == ["2026-03-05", "2026-03-04"]
    assert [*asked("2026-03-07T00:11:00+00:00")] == ["2026-03-06", "2026-03-05"], "what is forgotten is no bill"
    assert run(local_instance, lambda *_: a_bill(GroupUsage()), "2026-03-04").success
    assert [*asked("2026-03-05T06:11:00+00:00")] == []


def test_a_bill_that_is_being_made_is_not_asked_for_again(asked, local_instance):
    job = dg.Definitions(assets=[bill_asset(group())], jobs=[bill_job(group())]).resolve_job_def("bill_job")
    tags = {"dagster/partition": "2026-03-04"}
    local_instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
    assert [*asked("2026-03-05T03:11:00+00:00")] == []
