"""What goes by the clock, and what is said of runs that failed."""

from dataclasses import replace

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status

from kgs_core.errors import TransientError
from kgs_core.fleet.host_process import HostProcess
from kgs_dagster.automation import lost_runs_sensor, run_failure_sensor, schedule
from kgs_dagster.jobs.lake import lake_maintenance_job
from kgs_dagster.launch import ATTEMPT
from tests.dagster.groups import group


def test_a_run_that_goes_on_is_joined_by_no_second_one(local_instance):
    instance = local_instance
    job = lake_maintenance_job(group())
    ours = schedule(job, "* * * * *")

    def tick():
        data = ours.evaluate_tick(dg.build_schedule_context(instance=instance))
        return len(data.run_requests), data.skip_message

    assert tick() == (1, None)
    run = instance.create_run_for_job(job, status=Status.STARTED)
    assert tick() == (0, f"run {run.run_id} is in progress")
    instance.report_run_failed(run)
    assert tick() == (1, None)


def said_of(event, instance, run_id, jobs=()):
    run = instance.get_run_by_id(run_id)
    context = dg.build_run_status_sensor_context("run_failure_sensor", event, instance, run).for_run_failure()
    return run_failure_sensor(group(), jobs)(context).skip_message


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (dg.Failure("lake /lake: no space left: make some"), "lake /lake: no space left: make some"),
        (TransientError("kafka: no answer"), "kgs_core.errors.TransientError: kafka: no answer"),
    ],
)
def test_a_failure_is_reported_in_one_line(instance, error, why):
    @dg.op
    def work():
        raise error

    @dg.job(name="consumer_job", executor_def=dg.in_process_executor, tags={"kgs/consumer": "3", ATTEMPT: "2"})
    def job():
        work()

    done = job.execute_in_process(instance=instance, raise_on_error=False)
    (event,) = [event for event in done.all_events if event.event_type_value == "PIPELINE_FAILURE"]
    said = said_of(event, instance, done.run_id, [job])
    assert said == f"group g: consumer 3 (attempt 2, run {done.run_id}) failed: {why}"


def test_lost_runs_are_marked_and_named_and_their_reason_is_reported(instance, run_of):
    here = HostProcess.current({})
    lost = run_of(1, Status.STARTED, replace(here, start_ticks=here.start_ticks - 1))
    found = lost_runs_sensor(group())(dg.build_sensor_context(instance=instance))
    assert found.skip_message == f"marked as over: {lost}"
    assert instance.get_run_by_id(lost).status is Status.FAILURE
    (event,) = [e.dagster_event for e in instance.all_logs(lost) if e.dagster_event and e.dagster_event.is_job_failure]
    said = said_of(event, instance, lost)
    assert said == f"group g: consumer 1 (attempt 1, run {lost}) failed: {event.message}"
    assert "gone" in event.message
