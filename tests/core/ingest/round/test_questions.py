"""What a round asks to read, and what its jobs came to, put together."""

from dataclasses import fields

from kgs_core.ingest.round.questions import ReadBatch, ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.lake.rule.batch import TopicBatch
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from tests.core.ingest.round.round_consumer import Consumer
from tests.core.ingest.round.round_world import World, good_answer, progress

A, A1, B = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def job(tp, seconds):
    """Result of a job that read one partition and has something to say of it in every way."""
    topic = tp.topic
    return ReadResult(
        batches=[TopicBatch(topic, TopicId("id"), {}, ())],
        troubles={tp: (StopCause.CORRUPT, f"corrupt {topic}")},
        stopped={tp: (3, f"stopped {topic}")},
        waiting={tp: (4, f"waiting {topic}")},
        failed={topic: f"failed {topic}"},
        unavailable={topic: f"unavailable {topic}"},
        wider={topic: f"wider {topic}"},
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


def test_of_a_job_of_its_own_a_partition_whose_end_is_not_known_is_named_with_nothing_to_read():
    """It is on trial, so its end was not asked for; left out, the client would give it up and connect to it anew."""
    topic = progress("a", 2, uses_dataframe=True).stopped({1: "corrupt"}, StopCause.CORRUPT, 0.0)
    here = Consumer.starting({"a": topic}, World({A: 9, A1: 9}, {A: 0, A1: 0})).next_round(10.0)
    while not any(isinstance(question, ReadBatch) for question in here.at.open.values()):
        number, question = next(iter(here.at.open.items()))
        here = here.given(number, *good_answer(here.world, question))
    (read,) = here.at.open.values()
    assert read.planned.ranges == {0: OffsetRange(0, 9), 1: OffsetRange(0, 0)}
    assert (read.start, read.has_dataframe) == ({}, True)
