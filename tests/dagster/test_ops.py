"""The run of a consumer, as far as it comes without Kafka; the rest is in tests/system/test_dagster_consumer.py."""

import logging
import os
import signal
import sys
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster import DagsterRunStatus as Status

from kgs_core.errors import PermanentError
from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import Incarnation, Member
from kgs_core.model import ConsumerId
from kgs_core.system.processes import RUN_ID
from kgs_dagster.definitions import build_defs
from kgs_dagster.launch import INCARNATION, attempt_of, consumer_run_request
from kgs_dagster.run_process import process_of
from kgs_dagster.settings import name_groups
from tests.dagster.groups import group, settings
from tests.dagster.results import failure


class NoSpark:
    """Nothing is reached that would need a session."""

    @property
    def spark_session(self):
        raise AssertionError


AT_FIRST = signal.getsignal(signal.SIGINT)


@pytest.fixture
def refusing_kafka(monkeypatch):
    """One that is away would be waited for."""

    def refused(_):
        raise PermanentError("Kafka localhost:1: list topics: not authorized: grant this user the right")

    monkeypatch.setattr("kgs_core.kafka.admin.KafkaAdmin.list_topics", refused)


def carry_out(instance, of=None):
    """A run of consumer 3, started by hand."""
    of = of or group()
    job = build_defs({"kgs_pyspark": NoSpark()}, [of]).resolve_job_def("consumer_job")
    config = consumer_run_request(of, ConsumerId(3), 1).run_config
    return job.execute_in_process(run_config=config, instance=instance, raise_on_error=False)


def test_a_consumer_that_cannot_work_fails_in_one_line_and_says_who_it_is(instance, run_of, tmp_path, refusing_kafka):
    """The fleet finds it by its tags: without them a second one would be started beside it."""
    run_of(3, Status.FAILURE, attempt=7)
    logging.getLogger("kgs_core").setLevel(logging.NOTSET)  # whatever an earlier test has left there
    failed = carry_out(instance, group(lake=f"{{root: {tmp_path}}}"))
    said = failure(failed)[1]
    assert said.startswith("Kafka localhost:1: list topics: ")
    assert "\n" not in said
    tags = instance.get_run_by_id(failed.run_id).tags
    assert (tags["kgs/group"], tags["kgs/consumer"], tags["kgs/role"]) == ("g", "3", "consumer")
    assert attempt_of(tags) == "8", "seven were started by the sensor"
    assert len(tags[INCARNATION]) == 36
    assert process_of(tags) == HostProcess.current({RUN_ID: failed.run_id})
    assert signal.getsignal(signal.SIGINT) is AT_FIRST
    assert logging.getLogger("kgs_core").handlers == []
    assert logging.getLogger("kgs_core").level == logging.NOTSET


def test_the_run_finds_transforms_beside_its_configuration(instance, tmp_path, monkeypatch, refusing_kafka):
    """Not in the code server's working directory: `kgs consume` would not find them there."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "/of/the/user")
    rules = "[{topic: orders, transform_arrow: 'clean:f'}]"
    ours = name_groups([(settings(topics=rules, lake=f"{{root: {tmp_path}}}"), tmp_path / "kgs.yaml")])[0]
    carry_out(instance, ours)
    assert sys.path[0] == str(tmp_path)
    assert os.environ["PYTHONPATH"] == f"{tmp_path}:/of/the/user"


class Starting:
    """A consumer whose Spark is being started when its run is told to end.

    Attributes:
        end: does what happens then.
    """

    end = None
    membership = None
    ending = None

    def __init__(self, _settings, consumer, **_more):
        self.member = Member(consumer, Incarnation("0" * 36))

    def run(self, stop):
        type(self).end(self, stop)


@pytest.fixture
def ended(instance, monkeypatch):
    """Runs a consumer that ends so; gives the result, and the run."""

    def run(end):
        monkeypatch.setattr("kgs_core.runtime.group_consumer.GroupConsumer", type("Ours", (Starting,), {"end": end}))
        result = carry_out(instance)
        return result, instance.get_run_by_id(result.run_id)

    return run


def test_a_process_whose_run_is_over_ends_before_it_has_begun_anything(instance, monkeypatch):
    """A pod that could not be scheduled starts late: another one has its number by now."""

    def never(*_, **__):
        raise AssertionError("it began")

    monkeypatch.setattr("kgs_core.runtime.group_consumer.GroupConsumer", never)
    given_up = dg.DagsterInstance.add_run_tags

    def marked_meanwhile(self, run_id, tags):
        given_up(self, run_id, tags)
        if ".dagster/kgs-process" in tags:
            self.report_run_failed(self.get_run_by_id(run_id), "did not start in time")

    monkeypatch.setattr(dg.DagsterInstance, "add_run_tags", marked_meanwhile)
    assert "marked as FAILURE before it began" in failure(carry_out(instance))[1]


def asked_in_dagster(instance, why=""):
    """As Dagster does when somebody asks it for the end of its only run, which is being carried out."""
    (run,) = instance.get_runs()
    if why:
        instance.add_run_tags(run.run_id, {"kgs/why": why})
    instance.report_run_canceling(run)


def error_of(result):
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data.error


@pytest.mark.parametrize(
    ("why", "told"),
    [("", "its run was terminated in Dagster"), ("no report within 180 s", "no report within 180 s")],
)
@pytest.mark.parametrize("by", ["flag", "interrupt", "error"])
def test_a_start_that_was_ended_is_canceled_and_says_why(instance, ended, why, told, by):
    """It was a red KeyboardInterrupt with two stack traces, and its reason stood in another run."""

    def end(_, stop):
        asked_in_dagster(instance, why)
        if by == "interrupt":  # Spark's handler
            raise KeyboardInterrupt
        stop.set()
        if by == "error":  # what the end of the JVM looks like from Python
            raise OSError("connection refused")

    result, run = ended(end)
    assert run.status is Status.CANCELED
    assert failure(result)[1] == f"consumer 3@00000000 ended before it had joined: asked to end ({told})"
    error = error_of(result)
    assert (error.stack, error.cause) == ([], None)


def test_a_start_that_was_ended_from_outside_has_failed(ended):
    """Nobody has asked Dagster: the machine went down, say."""
    result, run = ended(lambda _, stop: stop.set())
    assert run.status is Status.FAILURE
    assert "by a signal from outside Dagster" in failure(result)[1]


def test_a_consumer_that_has_drained_says_why_it_ended(instance, ended):
    def end(self, stop):
        asked_in_dagster(instance, "it is no longer wanted")
        stop.set()
        self.membership, self.ending = object(), SimpleNamespace(name="ASKED")

    _, run = ended(end)
    assert run.status is Status.SUCCESS
    said = [entry.user_message for entry in instance.all_logs(run.run_id)]
    assert "consumer 3@00000000 ended: asked to end (it is no longer wanted)" in said


def test_what_nobody_expected_keeps_its_trace(ended):
    def end(_self, _stop):
        raise ZeroDivisionError

    result, run = ended(end)
    assert run.status is Status.FAILURE
    assert error_of(result).cause.stack != []
