"""What a round read: the jobs of one round put together."""

from dataclasses import fields, replace

import pytest

from kgs_core.consumer.round.questions import ReadResult
from kgs_core.consumer.round.stops import StopCause
from kgs_core.exactly_once.batch import TopicBatch
from kgs_core.model import TopicId, TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def job(tp, seconds):
    """Result of a job that read one partition and has something to say of it in every way."""
    topic = tp.topic
    return ReadResult(
        batches=[TopicBatch(topic, TopicId("id"), {}, None)],
        lost={tp: f"lost {topic}"},
        stopped={tp: (3, f"stopped {topic}")},
        corrupt={tp: f"corrupt {topic}"},
        refused={tp: f"refused {topic}"},
        silent={tp: f"silent {topic}"},
        failed={topic: f"failed {topic}"},
        unavailable={topic: f"unavailable {topic}"},
        problems={f"problem {topic}"},
        fetch_s=seconds,
        write_s=2 * seconds,
    )


def test_nothing_that_either_job_came_to_is_left_out():
    both = job(A, 1.0)
    both.add(job(B, 0.5))
    assert (both.fetch_s, both.write_s) == (1.5, 3.0)
    for field in fields(ReadResult):
        first, second, whole = (getattr(each, field.name) for each in (job(A, 1.0), job(B, 0.5), both))
        if isinstance(whole, float):
            continue
        assert whole == (first + second if isinstance(whole, list) else first | second), field.name


@pytest.mark.parametrize(
    ("cause", "name"), [(StopCause.OUT_OF_RANGE, "lost"), (StopCause.CORRUPT, "corrupt"), (StopCause.DENIED, "refused")]
)
def test_a_partition_that_cannot_be_read_on_is_named_by_its_cause(cause, name):
    result = ReadResult()
    result.add_trouble(A, cause, "its words")
    assert result == replace(ReadResult(), **{name: {A: "its words"}})
