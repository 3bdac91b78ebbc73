"""Consumers as runs: who is there, who is dead, who is started once more."""

import signal
import subprocess
from dataclasses import replace

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status
from dagster._time import get_current_timestamp

from kgs_core.errors import TransientError
from kgs_core.fleet.consumer_pod import grace_period_s
from kgs_core.fleet.host_process import HostProcess
from kgs_core.model import ConsumerId
from kgs_core.system.process_identity import start_ticks
from kgs_dagster.jobs.lake import lake_maintenance_job
from kgs_dagster.launch import DagsterFleet, attempt_of, consumer_run_request
from kgs_dagster.run_process import PROCESS, claim_run, process_tag, process_title
from tests.dagster.groups import group, two_groups
from tests.dagster.processes import a_process

LIVING = HostProcess.current({})
ONE, TWO = ConsumerId(1), ConsumerId(2)
NO_RUN = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def dead():
    """A process of this machine that has ended."""
    child = subprocess.Popen(["sleep", "60"])
    process = replace(LIVING, pid=child.pid, start_ticks=start_ticks(child.pid) or 0)
    child.kill()
    child.wait()
    return process


def named(process, run_id):
    return replace(process, run_id=run_id)


def test_a_request_names_job_consumer_and_attempt():
    """Dagster shows all tags but those that begin with .dagster/: what a list of runs shows fits in a line."""
    found = consumer_run_request(group("flights"), ConsumerId(3), 2)
    assert (found.run_key, found.job_name) == ("flights/3/2", "consumer_job")
    assert found.run_config == {"ops": {"consume": {"config": {"consumer": 3}}}}
    shown = {name: value for name, value in found.tags.items() if not name.startswith(".dagster/")}
    assert shown == {"kgs/group": "flights", "kgs/consumer": "3", "kgs/role": "consumer"}
    assert attempt_of(found.tags) == "2"
    requests = [consumer_run_request(each, ONE, 1) for each in two_groups()]
    assert [request.job_name for request in requests] == ["consumer_job_a_b", "consumer_job_c_d"]
    assert [list(request.run_config["ops"]) for request in requests] == [["consume_a_b"], ["consume_c_d"]]


def test_a_fleet_knows_its_runs_and_no_other_groups(instance, run_of):
    mine = run_of(1, Status.STARTED, LIVING)
    run_of(1, Status.STARTED, LIVING, of=group("another"))
    (found,) = DagsterFleet(instance, group()).runs()
    assert (found.consumer, found.handle, found.is_over, found.exit_code) == (ONE, mine, False, None)
    assert 0 <= found.started_s < 60


@pytest.mark.parametrize("status", [Status.QUEUED, Status.NOT_STARTED, Status.STARTING, Status.CANCELING])
def test_a_run_that_has_not_ended_is_not_over(instance, run_of, status):
    run_of(1, status)
    assert [run.is_over for run in DagsterFleet(instance, group()).runs()] == [False]


@pytest.mark.parametrize(("status", "code"), [(Status.SUCCESS, 0), (Status.FAILURE, 1), (Status.CANCELED, None)])
def test_a_run_is_over_when_its_process_is_gone_too(instance, run_of, dead, status, code):
    """Dagster gives up a run that is slow to end, and marks it as over while it still reads."""
    run_of(1, status, LIVING)
    run_of(2, status, dead)
    found = DagsterFleet(instance, group()).runs()
    assert [(run.consumer, run.is_over, run.exit_code) for run in found] == [(ONE, False, code), (TWO, True, code)]


def test_runs_that_ended_long_ago_are_forgotten(instance, run_of, dead):
    run_of(1, Status.SUCCESS, dead)
    run_of(2, Status.STARTED, LIVING)
    later = DagsterFleet(instance, group(), clock=lambda: get_current_timestamp() + 7200)
    assert [run.consumer for run in later.runs()] == [TWO]


def test_an_attempt_is_one_more_than_the_highest(instance, run_of):
    fleet = DagsterFleet(instance, group())
    assert fleet.next_attempt(ONE) == 1
    run_of(1, Status.FAILURE, attempt=1)
    run_of(1, Status.FAILURE, attempt=4)
    run_of(2, Status.FAILURE, attempt=9)
    assert fleet.next_attempt(ONE) == 5
    run_of(1, Status.FAILURE, attempt=1)  # executed again in the UI, with its tags
    assert fleet.next_attempt(ONE) == 5


def test_a_run_in_the_queue_is_stopped_at_once_and_says_why(local_instance, run_of):
    run = run_of(1, Status.QUEUED, where=local_instance)
    fleet = DagsterFleet(local_instance, group())
    fleet.stop(run, "no report within 180 s")
    found = local_instance.get_run_by_id(run)
    assert (found.status, found.tags["kgs/why"]) == (Status.CANCELED, "no report within 180 s")
    said = [entry.dagster_event.message for entry in local_instance.all_logs(run)]
    assert "kgs asks this run to end: no report within 180 s" in said
    fleet.stop(run)
    fleet.stop(NO_RUN)


@pytest.fixture
def asked(instance, monkeypatch):
    """Runs that Dagster was asked to end."""
    asked = []
    monkeypatch.setattr(instance.run_coordinator, "cancel_run", asked.append)
    return asked


def test_a_process_of_this_host_is_asked_itself_be_it_frozen(instance, run_of, asked):
    """Dagster's code server would wait for it, and start no run until then."""
    run = run_of(1, Status.STARTED)
    with a_process(process_title(run), is_deaf=False) as (child, process):
        instance.add_run_tags(run, {PROCESS: process_tag(process)})
        child.send_signal(signal.SIGSTOP)
        DagsterFleet(instance, group()).stop(run)
        child.send_signal(signal.SIGCONT)
        assert child.wait(30) == -signal.SIGTERM
    assert instance.get_run_by_id(run).status is Status.CANCELING
    assert asked == []


def test_a_run_whose_process_is_gone_is_closed_without_dagsters_code_server(instance, run_of, asked, dead):
    run = run_of(1, Status.STARTED, dead)
    fleet = DagsterFleet(instance, group())
    fleet.stop(run)
    assert asked == []
    assert fleet.close_lost_runs() == (run,)
    assert instance.get_run_by_id(run).status is Status.CANCELED


def test_of_a_process_that_is_not_known_to_be_a_runs_dagster_is_asked(instance, run_of, asked):
    with a_process("postgres", is_deaf=False) as (child, process):
        elsewhere = replace(process, host="elsewhere", boot_id="another", machine_id="another")
        runs = [run_of(1, Status.STARTED, process), run_of(2, Status.STARTED), run_of(3, Status.STARTED, elsewhere)]
        for run in runs:
            DagsterFleet(instance, group()).stop(run)
        assert child.poll() is None
    assert asked == runs


def test_dead_is_who_is_gone_and_whose_run_is_over(instance, run_of, dead):
    """Dagster's memory may be lost; of another machine nothing is certain."""
    ended, open_ = run_of(1, Status.FAILURE, dead), run_of(2, Status.STARTED, dead)
    fleet = DagsterFleet(instance, group())
    elsewhere = replace(dead, host="elsewhere")
    assert [
        fleet.is_dead(process.as_process())
        for process in (named(dead, ended), named(dead, NO_RUN), dead, named(LIVING, ended), named(LIVING, NO_RUN))
    ] == [True, True, True, False, False]
    assert fleet.is_dead(named(dead, open_).as_process()) is fleet.is_dead(named(elsewhere, ended).as_process()) is None


def test_a_look_at_the_runs_is_not_taken_for_a_later_one(instance, run_of, dead):
    """Whoever asks about each consumer, every second, needs one look at the runs and not one for each."""
    run = run_of(1, Status.STARTED, dead)
    now = get_current_timestamp()
    fleet = DagsterFleet(instance, group(), clock=lambda: now)
    fleet.runs()
    instance.report_run_failed(instance.get_run_by_id(run))
    assert fleet.is_dead(named(dead, run).as_process()) is None
    now += 1
    assert fleet.is_dead(named(dead, run).as_process()) is True


def test_a_run_whose_machine_went_down_is_closed(instance, run_of):
    """Nobody else marks it: its consumer would never be started again."""
    before_boot = replace(LIVING, boot_id="another boot")
    lost = run_of(1, Status.STARTED, before_boot)
    run_of(2, Status.STARTED, LIVING)
    run_of(3, Status.QUEUED)
    fleet = DagsterFleet(instance, group())
    assert fleet.delete_late_jobs() == (), "runs are no pods"
    assert fleet.close_lost_runs() == (lost,)
    assert instance.get_run_by_id(lost).status is Status.FAILURE
    assert fleet.is_dead(named(before_boot, lost).as_process()) is True
    assert fleet.close_lost_runs() == ()


def test_a_consumer_that_does_not_hear_that_it_shall_end_is_killed(instance, run_of):
    """The code server that has to tell it may have been killed itself."""
    deaf = run_of(1, Status.CANCELING)
    with a_process(process_title(deaf)) as (child, process):
        instance.add_run_tags(deaf, {PROCESS: process_tag(process)})
        assert DagsterFleet(instance, group()).close_lost_runs() == ()
        assert child.poll() is None
        in_time = get_current_timestamp() + grace_period_s(group().settings) + 1
        later = DagsterFleet(instance, group(), clock=lambda: in_time)
        later.close_lost_runs()
        assert child.wait(30) == -signal.SIGKILL
    later.close_lost_runs()
    assert instance.get_run_by_id(deaf).status is Status.CANCELED


def test_a_process_is_not_killed_because_a_tag_names_it(instance, run_of):
    """Whoever may use Dagster can write any tag, and a process has its start time in /proc for all to see."""
    in_time = get_current_timestamp() + grace_period_s(group().settings) + 1
    for title in ("postgres", process_title("another run")):
        with a_process(title) as (child, process):
            run_of(1, Status.CANCELING, process)
            DagsterFleet(instance, group(), clock=lambda: in_time).close_lost_runs()
            assert child.poll() is None


def test_a_run_that_was_launched_and_never_heard_of_is_closed_after_a_while(instance, run_of):
    lost = run_of(1, Status.STARTING)
    run_of(2, Status.QUEUED)
    assert DagsterFleet(instance, group()).close_lost_runs() == ()
    start_timeout_s = group().settings.membership.start_timeout_s
    later = DagsterFleet(instance, group(), clock=lambda: get_current_timestamp() + 3 * start_timeout_s)
    assert later.close_lost_runs() == (lost,)


def test_a_database_that_does_not_answer_is_reported_in_the_cores_words(local_instance, tmp_path):
    (database,) = tmp_path.rglob("runs.db")
    database.write_bytes(b"not a database" * 100)
    with pytest.raises(TransientError, match="Dagster: runs cannot be read"):
        DagsterFleet(local_instance, group()).runs()


def test_any_run_of_the_group_whose_process_is_gone_is_closed(instance, dead):
    """One that counts as running for ever would keep its schedule, or the next rebalance, waiting for ever."""
    job = lake_maintenance_job(group())
    lost = instance.create_run_for_job(job, status=Status.STARTED, tags={**job.tags, PROCESS: process_tag(dead)})
    instance.create_run_for_job(job, status=Status.STARTED, tags={**job.tags, PROCESS: process_tag(LIVING)})
    assert DagsterFleet(instance, group()).close_lost_runs() == (lost.run_id,)


def test_a_run_is_claimed_by_the_process_that_begins_it(instance, run_of):
    run = run_of(1, Status.STARTED)
    assert claim_run(instance, run, {"kgs/more": "1"}) == named(LIVING, run)
    tags = instance.get_run_by_id(run).tags
    assert (tags["kgs/more"], tags[PROCESS]) == ("1", process_tag(named(LIVING, run)))


def test_a_run_that_was_given_up_does_not_begin(instance, run_of):
    """Another one may have been started in its place."""
    with pytest.raises(dg.Failure, match="marked as FAILURE before it began"):
        claim_run(instance, run_of(1, Status.FAILURE))
