"""The arrow processor: one Spark task reads all its topics with one client and writes one file a topic."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from kgs_core.errors import TransientError, one_line
from kgs_core.ingest.fetch.fetch_client import Fetched
from kgs_core.ingest.fetch.fetch_sessions import session
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.batch_files import write_batch
from kgs_core.ingest.worker.parsed_records import load_parsers
from kgs_core.ingest.worker.process_batch import TransformError, prepare_topic
from kgs_core.ingest.worker.topic_job import MoreColumnsError, TopicJob
from kgs_core.kafka.records import collector_paused
from kgs_core.lake.files.storage import Storage
from kgs_core.model import TopicPartition, by_topic
from kgs_core.system.failpoints import FailpointPlan, failpoint

SIDE_BY_SIDE = 16
"""Files on their way to an object store. On a disk one follows the other: it answers at once, and threads that hand
Python to and fro took half as much processor time again for files of some records, and were no sooner done."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Context of every task of a consumer. Picklable.

    Attributes:
        crash: `crash_plan()` of the driver.
        interrupt: while this file exists, a worker that waits for records comes back. A worker of another machine does
            not see it, and comes back at the end of its slice.
        formats: what records of this group may be in. A worker loads them before its first round: what is compiled for
            one takes a minute on a machine that is new and busy, and a batch that lasts as long ends its process.
    """

    client: Mapping[str, str | int | bool]
    storage: Storage
    crash: FailpointPlan | None
    interrupt: str = ""
    formats: frozenset[str] = frozenset()


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


def read_round(request: ArrowRequest, is_interrupted: Callable[[], bool] | None = None) -> ReadResult:
    """Fetch, transform and write one round; a topic that fails does not hold up the others.

    `is_interrupted`: whether to come back though there is nothing; None: while the file of its context is there.
    """
    context = request.context
    load_parsers(context.formats)
    began = time.monotonic()
    client = client_of("arrow", context, request.jobs)
    fetched = client.gather(
        request.start,
        request.batch_bytes,
        request.wait_time_s,
        request.slice_s,
        is_interrupted or partial(os.path.exists, context.interrupt),
    )
    result = ReadResult(
        troubles=fetched.troubles,
        problems=fetched.problems,
        fetch_s=time.monotonic() - began,
        waited_s=fetched.waited_s,
        received=Counter(client.received()),
    )
    if not fetched.ranges:
        return result
    failpoint("fetched", context.crash)
    _process(request, fetched, result)
    failpoint("written", context.crash)
    result.write_s = time.monotonic() - began - result.fetch_s
    return result


def client_of(name: str, context: TaskContext, jobs: Mapping[str, TopicJob]) -> NativeFetchSession:
    """This worker's client of that name, told which life of each topic is read, and what came before.

    Raises:
        PermanentError, KafkaException: as `session`.
    """
    client = session(name, context.client)
    client.epochs = {TopicPartition(topic, p): e for topic, job in jobs.items() for p, e in job.leader_epochs.items()}
    client.topic_ids = {topic: job.plan.topic_id for topic, job in jobs.items()}
    return client


def _process(request: ArrowRequest, fetched: Fetched, result: ReadResult) -> None:
    """Put into the result what becomes of each topic. The user's code runs in this thread alone, files go beside it."""
    storage = request.context.storage
    on_their_way: list[tuple[str, Future[ReadResult]]] = []
    with ThreadPoolExecutor(SIDE_BY_SIDE, "files") as pool:  # has no thread as long as it is given nothing
        for topic, ranges in sorted(by_topic(fetched.ranges).items()):
            with own_affair(topic, result):
                job = request.jobs[topic]
                found, rows = prepare_topic(storage, job, fetched.of(topic), ranges)
                if storage.is_in_objects:
                    on_their_way.append((topic, pool.submit(write_batch, storage, job, found, rows)))
                else:
                    result.add(write_batch(storage, job, found, rows))
        for topic, written in on_their_way:
            with own_affair(topic, result):
                began_s, began_cpu_s = time.monotonic(), time.process_time()
                result.add(written.result())
                idle_s = time.monotonic() - began_s - (time.process_time() - began_cpu_s)
                result.waited_s += max(0.0, idle_s)


@contextmanager
def own_affair(topic: str, result: ReadResult) -> Iterator[None]:
    """Put what goes wrong into the result as this topic's; the other topics' records are fine."""
    try:
        yield
    except MoreColumnsError as e:
        result.wider[topic] = e.columns
    except TransientError as e:
        result.unavailable[topic] = str(e)
    except TransformError as e:
        result.failed[topic] = str(e)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as e:  # noqa: BLE001 - as above, and a panic of Rust is no Exception
        result.failed[topic] = f"{type(e).__name__}: {one_line(e)}"
