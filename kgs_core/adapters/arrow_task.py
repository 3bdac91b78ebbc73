"""The arrow finish: one Spark task reads all its topics with one client and writes one file a topic."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from kgs_core.adapters.crash_points import CrashPlan, crash_here
from kgs_core.adapters.fetch import session
from kgs_core.adapters.finish import ReadResult, TopicJob, TransformError, finish_topic
from kgs_core.adapters.records import collector_paused
from kgs_core.adapters.storage import Storage
from kgs_core.model import OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What every task of a consumer is told. Picklable.

    Attributes:
        client: librdkafka's configuration.
        crash: `crash_plan()` of the driver.
        hurry: while this file exists, a worker that waits for records comes back. A worker of another machine does not
            see it, and comes back at the end of its slice.
    """

    client: Mapping[str, str | int | bool]
    storage: Storage
    crash: CrashPlan | None
    hurry: str = ""


@dataclass(frozen=True, slots=True)
class ArrowRequest:
    """One round: where each partition begins, and how much to gather."""

    context: TaskContext
    jobs: Mapping[str, TopicJob]
    start: Mapping[TopicPartition, int]
    batch_bytes: int
    wait_time_s: float
    slice_s: float


def run_arrow_task(request: ArrowRequest, rows: Iterator[object]) -> Iterator[ReadResult]:
    """Body of the Spark task."""
    list(rows)  # Spark throws the worker away, and our client with it, unless its input is read to the end
    with collector_paused():
        result = read_round(request)
    yield result


def read_round(request: ArrowRequest) -> ReadResult:
    """Fetch, transform and write one round; a topic that fails does not hold up the others."""
    context = request.context
    began = time.monotonic()
    fetched = session("arrow", context.client).gather(
        request.start, request.batch_bytes, request.wait_time_s, request.slice_s, partial(os.path.exists, context.hurry)
    )
    result = ReadResult(lost=fetched.lost, problems=fetched.problems, fetch_s=time.monotonic() - began)
    if not fetched.ranges:
        return result
    crash_here("fetched", context.crash)
    by_topic: dict[str, dict[int, OffsetRange]] = {}
    for tp, offsets in fetched.ranges.items():
        by_topic.setdefault(tp.topic, {})[tp.partition] = offsets
    for topic, ranges in sorted(by_topic.items()):
        try:
            batch, cut = finish_topic(context.storage, request.jobs[topic], fetched.messages.get(topic, []), ranges)
        except TransformError as e:
            result.failed[topic] = str(e)
            continue
        if batch is not None:
            result.batches.append(batch)
        result.poison |= {TopicPartition(topic, p): found for p, found in cut.items()}
    crash_here("written", context.crash)
    result.write_s = time.monotonic() - began - result.fetch_s
    return result
