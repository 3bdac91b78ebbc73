"""Open transactions of partitions: who has them, what their coordinator says, and how one is ended from outside.

By kafka-python: librdkafka has none of these requests.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import kafka.errors
from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.producer.transaction import WriteTxnMarkersRequest

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, PortError, TransientError
from kgs_core.kafka.kafka_python import open_kafka_python
from kgs_core.model import TopicPartition
from kgs_core.system.closing import Closing

_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What a partition's leader knows of a transaction that is open there.

    Attributes:
        start: offset of its first record.
    """

    tp: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class CoordinatorView:
    """What a coordinator says of a transactional id.

    Attributes:
        state: Kafka's word: Empty, Ongoing, PrepareCommit, PrepareAbort, PrepareEpochFence, CompleteCommit,
            CompleteAbort, Dead.
        producer_epoch: of whoever was fenced in last, or a later one.
    """

    state: str
    producer_id: int
    producer_epoch: int


class OpenTransactions(Closing):
    """A connection for such questions; a context manager that ends it.

    Every method raises TransientError (no answer, no leader) or PermanentError (refused).
    """

    def __init__(self, settings: Settings) -> None:
        self._where = settings.kafka.bootstrap_servers
        self._client: KafkaAdminClient = open_kafka_python(settings, _TIMEOUT_S)

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def found_in(self, tps: Collection[TopicPartition]) -> list[OpenTransaction]:
        """All that are open in these partitions. Needs Read on their topics."""
        theirs = [ClientTopicPartition(tp.topic, tp.partition) for tp in sorted(tps)]
        answers = self._ask("open transactions", lambda: self._client.describe_producers(theirs))
        return [
            OpenTransaction(
                TopicPartition(tp.topic, tp.partition),
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
                producer.current_transaction_start_offset,
            )
            for tp, answer in answers.items()
            for producer in answer.active_producers
            if producer.current_transaction_start_offset >= 0
        ]

    def coordinator_of(self, transactional_id: str) -> CoordinatorView | None:
        """What the coordinator says now; None: it does not know the id. Needs Describe on the transactional id."""
        ask = self._client.describe_transactions
        try:
            found = self._ask(f"transactional id {transactional_id}", lambda: ask([transactional_id]))[transactional_id]
        except PermanentError as e:
            if isinstance(e.__cause__, kafka.errors.TransactionalIdNotFoundError):
                return None
            if isinstance(e.__cause__, kafka.errors.TransactionalIdAuthorizationFailedError):
                raise PermanentError(f"{e}: give this user Describe on it") from e.__cause__
            raise
        return CoordinatorView(str(found.state.value), found.producer_id, found.producer_epoch)

    def end(self, found: OpenTransaction, leader: int, *, commit: bool) -> None:
        """Write the marker that ends a transaction in its partition. Needs ClusterAction (or Alter) on the cluster.

        The leader refuses where a newer epoch of the producer has written since, or a newer coordinator.
        """
        marker = WriteTxnMarkersRequest.WritableTxnMarker
        request = WriteTxnMarkersRequest(
            markers=[
                marker(
                    producer_id=found.producer_id,
                    producer_epoch=found.producer_epoch,
                    transaction_result=commit,
                    topics=[marker.WritableTxnMarkerTopic(name=found.tp.topic, partition_indexes=[found.tp.partition])],
                    coordinator_epoch=max(0, found.coordinator_epoch),
                )
            ]
        )
        what = f"end the transaction in {found.tp}"
        for answer in self._send(what, request, leader).markers:
            for topic in answer.topics:
                for partition in topic.partitions:
                    self._check(what, partition.error_code)

    def _send(self, what: str, request: object, broker: int) -> Any:
        manager = self._client._manager  # noqa: SLF001 - the admin client's own way to send what it has no method for

        async def send() -> object:
            return await manager.send(request, node_id=broker)

        return self._ask(what, lambda: manager.run(send))

    def _check(self, what: str, code: int) -> None:
        error = kafka.errors.for_code(code)
        if error is not kafka.errors.NoError:
            raise self._error(what, error()) from error()

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaError as e:
            raise self._error(what, e) from e
        except ValueError as e:  # a state that this kafka-python does not know
            raise PermanentError(f"Kafka {self._where}: {what}: an answer that cannot be read: {e}") from e

    def _error(self, what: str, error: KafkaError) -> PortError:
        kind = TransientError if getattr(error, "retriable", False) else PermanentError
        return kind(f"Kafka {self._where}: {what}: {' '.join(str(error).split())}")


def is_without_right(error: PermanentError) -> bool:
    """Whether Kafka has refused for want of a right on the cluster."""
    return isinstance(error.__cause__, kafka.errors.ClusterAuthorizationFailedError)
