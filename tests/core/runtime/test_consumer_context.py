"""A consumer's patience with its rounds: what is waited for, what ends it, and with which words."""

import errno
from types import SimpleNamespace

import pytest

from kgs_core.errors import ConfigError, PermanentError, TransientError, UnsafeError
from kgs_core.model import ConsumerId
from kgs_core.runtime.consumer_context import MAX_FAILURES, ConsumerContext
from kgs_core.system.shutdown import StopFlag
from tests.configuration import settings_of


@pytest.fixture
def reader():
    found = object.__new__(ConsumerContext)
    found._consumer, found._failures = ConsumerId(1), 0
    found.__dict__["runner"] = SimpleNamespace(has_ended=False)
    return found


def attempt(reader, error=None, stop=None, expected=True):
    waits = []

    def step():
        if error is not None:
            raise error

    assert reader.attempt(step, waits.append, stop) is expected
    return waits


@pytest.mark.parametrize(
    "error",
    [
        TransientError("Kafka is away"),
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("org.apache.spark.SparkException: ...\nOSError: [Errno 28] No space left on device"),
        RuntimeError("Traceback\nkgs_core.errors.TransientError: S3 did not answer"),
    ],
    ids=["Kafka", "a full disk", "a full disk in a task", "our own word in a task"],
)
def test_what_may_pass_is_waited_for_as_long_as_it_takes(reader, error):
    """A full disk counted as the consumer's own failure, five of which ended it."""
    for _ in range(2 * MAX_FAILURES):
        assert len(attempt(reader, error)) == 1


@pytest.mark.parametrize("error", [ConfigError(["a"]), PermanentError("b"), UnsafeError("No space left on device")])
def test_what_a_person_must_mend_ends_it_at_once(reader, error):
    with pytest.raises(type(error)):
        attempt(reader, error)


class UnspeakableError(Exception):
    """An error whose text a JVM has that is gone, as one of py4j's."""

    def __str__(self):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


def test_an_error_that_cannot_say_what_it_is_counts_as_a_failed_round(reader):
    assert attempt(reader, UnspeakableError())
    reader.runner.has_ended = True
    with pytest.raises(TransientError, match="last: UnspeakableError"):
        attempt(reader, UnspeakableError())


@pytest.mark.parametrize("error", [None, UnspeakableError()])
def test_who_is_asked_to_end_together_with_its_spark_ends_in_order(reader, error):
    """As by a signal to the whole process group."""
    stop = StopFlag()
    assert attempt(reader, stop=stop, expected=True) == []
    stop.set()
    reader.runner.has_ended = True
    assert attempt(reader, error, stop, expected=False) == []


def test_five_failed_rounds_end_it_with_the_last_ones_cause(reader):
    for _ in range(MAX_FAILURES - 1):
        assert attempt(reader, ValueError("boom"))
    with pytest.raises(TransientError, match="consumer 1: 5 rounds failed, last: boom"):
        attempt(reader, ValueError("boom"))


def test_a_good_round_between_begins_the_count_anew(reader):
    for _ in range(2 * MAX_FAILURES):
        attempt(reader, ValueError("boom"))
        attempt(reader)


def test_a_consumer_whose_jvm_is_gone_ends_though_no_round_fails(reader):
    """What a dataframe topic meets stays its own: each of its batches failed, for ever, and nobody noticed."""
    attempt(reader)
    reader.runner.has_ended = True
    with pytest.raises(TransientError, match="Spark's JVM has ended"):
        attempt(reader)


def test_a_runner_that_there_is_not_is_refused_by_name(monkeypatch):
    reader = object.__new__(ConsumerContext)
    reader._settings = settings_of()
    monkeypatch.setenv("KGS_BATCH_RUNNER", "flink")
    with pytest.raises(ConfigError, match="KGS_BATCH_RUNNER=flink: no such runner of batches: use spark"):
        _ = reader.runner
