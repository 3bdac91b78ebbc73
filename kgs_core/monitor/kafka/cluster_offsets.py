"""Layout of a cluster and offsets of all its partitions, for one who asks every second.

librdkafka's consumer answers for thousands of partitions with one object each; its administration makes a future and
several objects of each, which takes ten times the CPU.
"""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientTopicPartition

from kgs_core.config import Settings
from kgs_core.errors import TransientError
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.errors import ConnectionWatch, port_error
from kgs_core.kafka.silent_brokers import ask, in_thread
from kgs_core.model import TopicPartition

AT_ONCE = 5000
"""Partitions in one request, which has the whole time-out for itself."""
_THREADS = 32
_SPECS = {"earliest": -2, "latest": -1}  # in the place of a time, as in the protocol

Layout = Mapping[str, Mapping[int, int]]
"""Topic -> number of each partition -> its leader; -1: none."""


class ClusterOffsets:
    """A client of its own; never a member of a group."""

    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._where = settings.kafka.bootstrap_servers
        self._watch = ConnectionWatch()
        config: dict[str, Any] = {
            **reading_client(settings),
            "isolation.level": "read_uncommitted",  # what is written, committed or not
            "client.id": "kgs-monitor",
            "error_cb": self._watch.note,
        }
        self._made = RotatingClient(config, Consumer)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="cluster-offsets")

    def layout(self, is_wanted: Callable[[str], bool]) -> Layout:
        """The topics that are wanted, as one broker has them. Raises `PortError` for no answer, or a refusal."""
        began = time.monotonic()
        try:
            found = ask(
                self._made, lambda client, s: in_thread(partial(client.list_topics, timeout=s)), self._timeout_s
            )[None]
        except TimeoutError as e:
            raise TransientError(f"Kafka {self._where}: list topics: no answer in {self._timeout_s:g} s") from e
        if isinstance(found, KafkaError):
            raise port_error(self._where, "list topics", found, self._watch.cause_since(began))
        return {
            name: {number: partition.leader for number, partition in topic.partitions.items()}
            for name, topic in found.topics.items()
            if topic.error is None and is_wanted(name)
        }

    def offsets(
        self, wanted: Mapping[int, Collection[TopicPartition]], which: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        """First offset that is still there, or the next one to be written; without what a leader does not tell.

        Args:
            wanted: by leader: these are asked side by side.
        """
        found: dict[TopicPartition, int] = {}
        for answers in self._pool.map(partial(self._offsets, spec=_SPECS[which]), wanted.values()):
            found |= answers
        return found

    def close(self) -> None:
        """End the client."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        if (client := self._made.take()) is not None:
            client.close()

    def _offsets(self, tps: Collection[TopicPartition], spec: int) -> dict[TopicPartition, int]:
        """Of one broker; what is left when it does not answer is not asked for."""
        found: dict[TopicPartition, int] = {}
        each = [ClientTopicPartition(tp.topic, tp.partition, spec) for tp in tps]
        for first in range(0, len(each), AT_ONCE):
            asked = each[first : first + AT_ONCE]
            try:
                answers = self._made.get().offsets_for_times(asked, self._timeout_s)
            except KafkaException:
                break
            found |= {TopicPartition(a.topic, a.partition): a.offset for a in answers if a.error is None}
        return {tp: offset for tp, offset in found.items() if offset >= 0}
