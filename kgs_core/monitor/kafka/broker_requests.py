"""Requests to several brokers, side by side and each with a deadline: sizes of logs, recent record batches."""

import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

from kgs_core.model import TopicPartition, numbers_by_topic

MAX_BATCHES_BYTES = 1_048_588
"""Of one partition in one answer: Kafka's default limit of one batch, since a batch over the limit is not sent."""
SIZES_AT_ONCE = 5000
"""Partitions whose sizes are in one request, which has the whole time-out for itself."""
_THREADS = 32
_FETCH_BYTES = 16_000_000
_BY_NAME = 12  # newer versions of the request name topics by id only
# Record batch, version 2: base offset, length of what follows; 23 bytes on, the last offset counted from the first
_BATCH = struct.Struct(">qi")
_LAST_OFFSET = struct.Struct(">i")
_LAST_OFFSET_AT = 23
_MAGIC_AT = 16
_MAGIC = 2
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class LogSizes:
    """Sizes of one broker's logs, those of one request.

    Attributes:
        time_s: middle of the request, `time.monotonic`.
        refused: the answer was empty, which is how a broker says that it may not tell.
    """

    time_s: float
    sizes: Mapping[TopicPartition, int]
    refused: bool


@dataclass(frozen=True, slots=True)
class Batches:
    """Record batches of one partition."""

    stored_bytes: int
    offsets: int


class BrokerRequests:
    """Asks brokers directly; owns `client` from now on."""

    def __init__(self, client: KafkaAdminClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="broker-requests")
        self._busy: dict[int, Future[Any]] = {}

    def log_sizes(self, wanted: Mapping[int, Collection[TopicPartition]]) -> dict[int, list[LogSizes | str]]:
        """By broker the answers about its logs of the wanted partitions: sizes, or last of all why there are no more.

        One that leads more than `SIZES_AT_ONCE` is asked several times, one after the other; the brokers side by side.
        Replicas on their way to another directory of the broker are left out: a log is there twice meanwhile.
        """
        parts = {broker: _in_parts(sorted(tps)) for broker, tps in wanted.items()}
        found: dict[int, list[LogSizes | str]] = {broker: [] for broker in wanted}
        while jobs := {b: partial(self._log_sizes, b, tps) for b, rest in parts.items() if (tps := next(rest, None))}:
            for broker, answer in self._ask(jobs).items():
                found[broker].append(answer)
                if isinstance(answer, str):
                    del parts[broker]
        return found

    def batches(self, wanted: Mapping[int, Mapping[TopicPartition, int]]) -> dict[int, dict[TopicPartition, Batches]]:
        """The stored batches from the one that holds the given offset on, of all brokers together.

        Partitions whose leader refused or did not answer are absent. Values are not read, nor decompressed.
        """
        answers = self._ask({broker: partial(self._batches, broker, offsets) for broker, offsets in wanted.items()})
        return {broker: found for broker, found in answers.items() if not isinstance(found, str)}

    def close(self) -> None:
        """End the connections and what waits for them."""
        self._client.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, jobs: Mapping[int, Callable[[], _Result]]) -> dict[int, _Result | str]:
        """Runs one job per broker; what is not done in time is left running, and its broker not asked again before."""
        self._busy = {broker: job for broker, job in self._busy.items() if not job.done()}
        running = {broker: self._pool.submit(job) for broker, job in jobs.items() if broker not in self._busy}
        wait(running.values(), self._timeout_s)
        results: dict[int, _Result | str] = {broker: f"broker {broker} still does not answer" for broker in jobs}
        for broker, future in running.items():
            if not future.done():
                self._busy[broker] = future
                results[broker] = f"broker {broker} did not answer in {self._timeout_s:g} s"
                continue
            try:
                results[broker] = future.result()
            except KafkaError as e:
                results[broker] = f"broker {broker} did not answer: {e}"[:200]
        return results

    def _log_sizes(self, broker: int, tps: Collection[TopicPartition]) -> LogSizes:
        began = time.monotonic()
        answers = self._client.describe_log_dirs(numbers_by_topic(sorted(tps)), brokers=[broker])
        middle = (began + time.monotonic()) / 2
        directories = [directory for answer in answers for directory in answer["log_dirs"]]
        sizes = {
            TopicPartition(topic["name"], log["partition_index"]): int(log["partition_size"])
            for directory in directories
            for topic in directory["topics"]
            for log in topic["partitions"]
            if not log["is_future_key"]
        }
        return LogSizes(middle, sizes, refused=not directories)

    def _batches(self, broker: int, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Batches]:
        request = _fetch_request(offsets)

        async def send() -> FetchResponse:
            return await manager.send(request, node_id=broker)

        manager = self._client._manager  # noqa: SLF001 - the admin client's own way to send what it has no method for
        response = manager.run(send)
        return {
            TopicPartition(topic.topic, found.partition_index): sum_batches(bytes(found.records))
            for topic in response.responses
            for found in topic.partitions
            if found.error_code == 0 and found.records
        }


def sum_batches(data: bytes) -> Batches:
    """Size and span of the whole batches in a broker's answer; the last may be cut off and is left out then."""
    stored = offsets = 0
    for size, span in _batch_headers(data):
        stored += size
        offsets += span
    return Batches(stored, offsets)


def _batch_headers(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + _LAST_OFFSET_AT + _LAST_OFFSET.size <= len(data):
        _, length = _BATCH.unpack_from(data, at)
        size = _BATCH.size + length
        # Batches in the formats before Kafka 0.11 do not say how many records they hold
        if length <= 0 or at + size > len(data) or data[at + _MAGIC_AT] != _MAGIC:
            return
        yield size, _LAST_OFFSET.unpack_from(data, at + _LAST_OFFSET_AT)[0] + 1
        at += size


def _in_parts(tps: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    return (tps[first : first + SIZES_AT_ONCE] for first in range(0, len(tps), SIZES_AT_ONCE))


def _fetch_request(offsets: Mapping[TopicPartition, int]) -> FetchRequest:
    topic_type = FetchRequest.FetchTopic
    topics = [
        topic_type(
            topic=topic,
            partitions=[
                topic_type.FetchPartition(
                    partition=partition,
                    current_leader_epoch=-1,
                    fetch_offset=offsets[TopicPartition(topic, partition)],
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=MAX_BATCHES_BYTES,
                )
                for partition in partitions
            ],
        )
        for topic, partitions in numbers_by_topic(sorted(offsets)).items()
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_FETCH_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=topics,
        forgotten_topics_data=[],
        rack_id="",
        max_version=_BY_NAME,
    )
