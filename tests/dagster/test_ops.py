"""The run of a consumer, as far as it comes without Kafka; the rest is in tests/system/test_dagster_consumer.py."""

import logging
import signal

import pytest
from dagster import DagsterRunStatus as Status

from kgs_core.adapters.process_identity import this_process
from kgs_core.adapters.run_processes import RUN_ID
from kgs_core.model import ConsumerId
from kgs_dagster.definitions import build_defs
from kgs_dagster.launch import consumer_run_request, process_of
from tests.dagster.groups import group


class NoSpark:
    """Nothing is reached that would need a session."""

    @property
    def spark_session(self):
        raise AssertionError


AT_FIRST = signal.getsignal(signal.SIGINT)  # ignored where the tests run in the background of a shell


@pytest.fixture
def failed(instance, run_of, tmp_path):
    """A run of consumer 3 of a group whose Kafka is not there, started by hand after seven by the sensor."""
    run_of(3, Status.FAILURE, attempt=7)
    ours = group(lake=f"{{root: {tmp_path}}}")
    logging.getLogger("kgs_core").setLevel(logging.NOTSET)  # whatever an earlier test has left there
    request = consumer_run_request(ours, ConsumerId(3), 1)
    job = build_defs({"kgs_pyspark": NoSpark()}, [ours]).resolve_job_def("consumer_job")
    return job.execute_in_process(run_config=request.run_config, instance=instance, raise_on_error=False)


def test_a_consumer_that_cannot_work_fails_in_one_line(failed):
    (failure,) = [event for event in failed.all_events if event.is_step_failure]
    said = failure.step_failure_data.user_failure_data
    assert said.description.startswith("Kafka localhost:1: list topics: ")
    assert "\n" not in said.description


def test_a_run_says_who_it_is_also_when_somebody_started_it_by_hand(instance, failed):
    """The fleet finds it by these: without them a second one would be started beside it."""
    tags = instance.get_run_by_id(failed.run_id).tags
    assert (tags["kgs/group"], tags["kgs/consumer"], tags["kgs/role"]) == ("g", "3", "consumer")
    assert tags["kgs/attempt"] == "8"
    assert len(tags["kgs/incarnation"]) == 36
    assert process_of(tags) == this_process({RUN_ID: failed.run_id})


def test_what_a_run_changes_in_its_process_it_puts_back(failed):
    assert signal.getsignal(signal.SIGINT) is AT_FIRST
    assert logging.getLogger("kgs_core").handlers == []
    assert logging.getLogger("kgs_core").level == logging.NOTSET
