"""Batches without Spark, against a mock cluster: what they read, how they come back early, what they refuse."""

import os
import time

import pytest

from kgs_core.config.settings import ConsumerSettings
from kgs_core.ingest.driver.local_batch_runner import LocalBatchRunner
from kgs_core.ingest.round.questions import ReadBatch
from kgs_core.ingest.worker import sorted_records
from kgs_core.ingest.worker.arrow_task import TaskContext
from kgs_core.kafka.client_config import reading_client
from kgs_core.model import TopicPartition
from tests.topic_jobs import topic_job

pytestmark = pytest.mark.usefixtures("no_sessions_left")


@pytest.fixture
def runner(kafka, storage):
    made = LocalBatchRunner(TaskContext(reading_client(kafka.settings()), storage, None), ConsumerSettings())
    yield made
    made.close()


@pytest.fixture
def job(kafka, storage, request):
    topic = request.node.name
    os.makedirs(storage.path(topic))
    kafka.topic(topic)
    return topic_job({"topic": topic, "transform": "hooks:f"})


def read(runner, job):
    start = {TopicPartition(job.topic, 0): 0}
    return runner.read(ReadBatch(start, {}, None, has_dataframe=False, batch_bytes=1_000_000), {job.topic: job})


def seconds(runner, job):
    began = time.perf_counter()
    read(runner, job)
    return time.perf_counter() - began


def test_a_read_that_waits_comes_back_when_hurried(runner, job):
    waited = max(seconds(runner, job) for _ in range(3))  # one may be over early: its client has found the broker
    runner.interrupt()
    assert min(seconds(runner, job) for _ in range(3)) < waited / 2
    runner.take_your_time()
    assert seconds(runner, job) > waited / 4


def test_what_formats_need_is_compiled_before_the_first_batch_which_has_a_deadline(kafka, storage, monkeypatch):
    loaded = []
    monkeypatch.setattr(sorted_records, "machine_code", loaded.append)
    context = TaskContext(reading_client(kafka.settings()), storage, None, formats=frozenset({"json", "raw"}))
    runner = LocalBatchRunner(context, ConsumerSettings())
    runner.warm()
    runner.close()
    assert loaded == ["kgs_core.accel.json_scan"]
