"""What Dagster's database says of rebalance runs, and of consumers that were ended because nobody wanted them."""

import signal
import time

import dagster as dg
import pytest

from kgs_core.errors import TransientError
from kgs_core.group.protocol import Received
from kgs_dagster.jobs.rebalance import LONGEST_BACK_OFF_S, RebalanceRuns, rebalance_job, rebalance_run_request
from kgs_dagster.launch import ATTEMPT, DagsterFleet
from kgs_dagster.resources import RebalanceConfig
from kgs_dagster.run_process import PROCESS, process_tag, process_title
from tests.dagster.groups import group as group_of
from tests.dagster.processes import a_process

GROUP = group_of()
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE


def at(offset):
    """A Target that stands there."""
    return None if offset is None else Received(None, offset, 700)


@dg.job
def some_job():
    pass


@pytest.fixture
def add(instance):
    """Makes a run as the daemon does; gives its id."""

    def make(status, target_offset=5, of=GROUP):
        request = rebalance_run_request(of, RebalanceConfig(measurement_offset=9), at(target_offset))
        return instance.create_run_for_job(some_job, tags=request.tags, status=status).run_id

    return make


@pytest.fixture
def ended(instance, monkeypatch):
    """Runs that were asked to end: what carries that out is not part of an instance in memory."""
    asked = []
    monkeypatch.setattr(instance.run_coordinator, "cancel_run", asked.append)
    return asked


def ago(instance, seconds):
    """The runs of the group, so many seconds from now."""
    return RebalanceRuns(instance, GROUP, lambda: time.time_ns() / 1e9 + seconds)


def test_nobody_is_held_up_at_first_nor_by_runs_of_others(instance, add):
    runs = RebalanceRuns(instance, GROUP)
    assert runs.hold(None) is None
    assert runs.next_attempt() == 1
    add(STARTED, of=group_of("another"))
    assert runs.hold(5) is None


@pytest.mark.parametrize("status", [STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.CANCELING])
def test_a_run_that_has_not_ended_holds_up_the_next_one(instance, add, status):
    run_id = add(status)
    hold = RebalanceRuns(instance, GROUP).hold(5)
    assert f"rebalance run {run_id[:8]} is in progress" in hold.why
    assert not hold.target_stands, "it may be about to write another"
    assert RebalanceRuns(instance, GROUP).hold(6).target_stands, "it has"
    assert ago(instance, 31).hold(5).target_stands, "it would have by now"


LIMIT_S = GROUP.settings.membership.group_management_timeout_s + 120


def test_a_run_that_hangs_holds_up_the_next_one_for_a_limited_time_only(instance, add, ended):
    """A deadlock, a database or a disk that hangs: nobody would move a partition any more, for ever."""
    assert rebalance_job(GROUP).tags["dagster/max_runtime"] == f"{LIMIT_S + 60:.0f}", "where no sensor does, Dagster"
    hung = add(STARTED)
    assert ago(instance, LIMIT_S - 5).hold(5) is not None
    assert instance.get_run_by_id(hung).status is STARTED
    back_off_s = GROUP.settings.membership.start_backoff_s
    ago(instance, LIMIT_S + 5).hold(5)
    assert instance.get_run_by_id(hung).status is FAILURE
    assert ago(instance, back_off_s + 1).hold(5) is None
    (why,) = [entry.dagster_event.message for entry in instance.all_logs(hung) if entry.dagster_event.is_job_failure]
    assert "hung: not over after" in why
    assert "the next run fences and continues it" in why


def test_the_process_of_a_run_that_hangs_is_ended(instance, add):
    """One that hangs in a call to a library hears no signal but the last."""
    hung = add(STARTED)
    with a_process(process_title(hung)) as (child, process):
        instance.add_run_tags(hung, {PROCESS: process_tag(process)})
        ago(instance, LIMIT_S + 5).hold(5)
        assert child.wait(30) == -signal.SIGKILL
    assert instance.get_run_by_id(hung).status is FAILURE


def test_a_run_behind_one_that_hangs_is_what_is_waited_for_then(instance, add, ended):
    """It was asked for by hand, and stands in the queue until the first one is over."""
    hung, queued = add(STARTED), add(dg.DagsterRunStatus.NOT_STARTED)
    hold = ago(instance, LIMIT_S + 5).hold(5)
    assert instance.get_run_by_id(hung).status is FAILURE
    assert queued[:8] in hold.why


def test_after_failures_the_wait_doubles_up_to_a_limit(instance, add):
    runs = RebalanceRuns(instance, GROUP)
    first_s = GROUP.settings.membership.start_backoff_s
    for count in range(1, 8):
        add(FAILURE)
        wait_s = min(first_s * 2 ** (count - 1), LONGEST_BACK_OFF_S)
        assert ago(instance, wait_s - 2).hold(5).target_stands
        assert ago(instance, wait_s + 2).hold(5) is None
        assert runs.next_attempt() == count + 1


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED])
def test_a_run_that_did_not_fail_ends_the_row(instance, add, status):
    for each in (FAILURE, FAILURE, status):
        add(each)
    runs = RebalanceRuns(instance, GROUP)
    assert runs.hold(5) is None
    assert runs.next_attempt() == 1
    add(FAILURE)
    assert runs.next_attempt() == 2


def test_a_database_that_does_not_answer_is_reported_in_the_words_of_the_core(instance, monkeypatch):
    def broken(*_arguments, **_more):
        raise OSError("disk full\nand a traceback")

    monkeypatch.setattr(type(instance), "get_run_records", broken)
    with pytest.raises(TransientError, match=r"^Dagster: runs cannot be read: disk full$"):
        RebalanceRuns(instance, GROUP).hold(5)


@pytest.mark.parametrize(
    ("config", "target_offset", "key"),
    [
        (RebalanceConfig(measurement_offset=9), 5, "g/5/9"),
        (RebalanceConfig(measurement_offset=9), None, "g/none/9"),
        (RebalanceConfig(packs=False, report_offset=33), 5, "g/5/report-33"),
        (RebalanceConfig(measurement_offset=9, written=5), 5, "g/written-5-700"),
    ],
)
def test_a_request_is_known_by_what_was_seen(config, target_offset, key):
    request = rebalance_run_request(GROUP, config, at(target_offset))
    assert request.run_key == key
    assert request.job_name == rebalance_job(GROUP).name
    assert request.tags[ATTEMPT] == "1"


def test_an_end_that_somebody_wanted_is_no_failure(instance, run_of, ended):
    unwanted, failed = run_of(7, STARTED), run_of(8, STARTED)
    fleet = DagsterFleet(instance, GROUP)
    fleet.stop_unwanted(unwanted)
    assert ended == [unwanted]
    assert [(run.handle, run.is_over) for run in fleet.runs()] == [(unwanted, False), (failed, False)]
    for run_id in (unwanted, failed):
        instance.report_run_failed(instance.get_run_by_id(run_id))
    assert [run.handle for run in fleet.runs()] == [failed]
    assert [run.handle for run in DagsterFleet(instance, GROUP).runs()] == [failed], "the next one knows it, too"
    assert fleet.next_attempt(7) == 2


def test_a_start_that_took_too_long_is_tagged_with_why_it_is_ended(instance, run_of, ended):
    run_id = run_of(7, STARTED)
    DagsterFleet(instance, GROUP).stop_overdue(run_id)
    limit_s = GROUP.settings.membership.start_timeout_s
    assert instance.get_run_by_id(run_id).tags["kgs/why"] == f"no report within {limit_s:g} s"
    assert ended == [run_id]
