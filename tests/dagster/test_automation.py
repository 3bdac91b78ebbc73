"""What goes by the clock, and runs whose end nobody else notices."""

from dataclasses import replace

import dagster as dg
from dagster import DagsterRunStatus as Status

from kgs_core.fleet.host_process import HostProcess
from kgs_dagster.automation import lost_runs_sensor, schedule
from kgs_dagster.jobs.lake import lake_maintenance_job
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


def test_lost_runs_are_marked_and_named_and_their_reason_is_recorded(instance, run_of):
    here = HostProcess.current({})
    lost = run_of(1, Status.STARTED, replace(here, start_ticks=here.start_ticks - 1))
    found = lost_runs_sensor(group())(dg.build_sensor_context(instance=instance))
    assert found.skip_message == f"marked as over: {lost}"
    assert instance.get_run_by_id(lost).status is Status.FAILURE
    (event,) = [e.dagster_event for e in instance.all_logs(lost) if e.dagster_event and e.dagster_event.is_job_failure]
    assert "gone" in event.message
