"""What goes by the clock, and what is said of runs that failed."""

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status

from kgs_core.errors import TransientError
from kgs_core.fleet.host_process import HostProcess
from kgs_dagster.automation import lost_runs_sensor, run_failure_sensor, schedule, scheduled_jobs
from kgs_dagster.jobs.lake import lake_maintenance_job
from tests.dagster.groups import group, two_groups


def test_every_group_has_schedules_of_its_own():
    names = [schedule(job, cron).name for each in two_groups() for cron, job in scheduled_jobs(each).items()]
    assert names[:3] == ["lake_maintenance_schedule_a_b", "lake_audit_schedule_a_b", "prune_runs_schedule_a_b"]
    assert len(set(names)) == 6


def test_a_run_that_goes_on_is_joined_by_no_second_one(local_instance):
    instance = local_instance
    job = lake_maintenance_job(group())
    ours = schedule(job, "* * * * *")

    def tick():
        data = ours.evaluate_tick(dg.build_schedule_context(instance=instance))
        return len(data.run_requests), data.skip_message

    assert tick() == (1, None)
    run = instance.create_run_for_job(job, status=Status.STARTED)
    assert tick() == (0, f"run {run.run_id} goes on")
    instance.report_run_failed(run)
    assert tick() == (1, None)


def test_lost_runs_are_marked_and_named(instance, run_of):
    here = HostProcess.current({})
    lost = run_of(1, Status.STARTED, HostProcess(here.host, "another boot", here.pid, here.start_ticks))
    sensor = lost_runs_sensor(group())
    found = sensor(dg.build_sensor_context(instance=instance))
    assert found.skip_message == f"marked as over: {lost}"
    assert instance.get_run_by_id(lost).status is Status.FAILURE


def failing_job(error):
    @dg.op
    def work():
        raise error

    @dg.job(name="consumer_job", executor_def=dg.in_process_executor, tags={"kgs/consumer": "3", "kgs/attempt": "2"})
    def job():
        work()

    return job


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (dg.Failure("lake /lake: no space left: make some"), "lake /lake: no space left: make some"),
        (TransientError("kafka: no answer"), "kgs_core.errors.TransientError: kafka: no answer"),
    ],
)
def test_a_failure_is_reported_in_one_line(instance, error, why):
    job = failing_job(error)
    done = job.execute_in_process(instance=instance, raise_on_error=False)
    (event,) = [event for event in done.all_events if event.event_type_value == "PIPELINE_FAILURE"]
    sensor = run_failure_sensor(group(), [job])
    context = dg.build_run_status_sensor_context(
        "run_failure_sensor", event, instance, instance.get_run_by_id(done.run_id)
    ).for_run_failure()
    assert sensor(context).skip_message == f"group g: consumer 3 (attempt 2, run {done.run_id}) failed: {why}"


def test_a_run_that_was_marked_from_outside_has_its_reason_reported(instance, run_of):
    run = instance.get_run_by_id(run_of(3, Status.STARTED))
    event = instance.report_run_failed(run, "its process is gone")
    context = dg.build_run_status_sensor_context("s", event, instance, run).for_run_failure()
    said = run_failure_sensor(group(), [])(context).skip_message
    assert said == f"group g: consumer 3 (attempt 1, run {run.run_id}) failed: its process is gone"
