"""Transactions of the controllers that Kafka has given up without ending them: recognised, and ended by the controller.

Kafka's coordinator may take a transaction for ended whose marker it has not written in every partition (KAFKA-20734: it
leaves out partitions that have no leader at that moment). Nobody ends it there any more; committed reads stop before
it, for ever. The reasoning: docs/adr/0024.
"""

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.errors import PermanentError, TransientError
from kgs_core.group.topics.topics import GroupTopic, GroupTopics, transactional_id_of
from kgs_core.group.topics.write_id import WriteId, write_id_of
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.clients import python_settings
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.records import PARTITION_END, Record, arrived
from kgs_core.model import TopicPartition

if TYPE_CHECKING:
    from kgs_core.kafka.open_transactions import CoordinatorView, OpenTransaction, OpenTransactions

_OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})
_CLOCKS_APART_MS = 600_000  # of two brokers
_PATIENCE_S = 10.0
_POLL_S = 0.2
_AT_ONCE = 1000
_log = logging.getLogger(__name__)


class HangingTransactions:
    """What ends transactions of the group's own controllers that hang. For who has fenced these."""

    def __init__(self, topics: GroupTopics) -> None:
        self._topics = topics
        self._id = transactional_id_of(topics.settings)
        self._where = topics.settings.kafka.bootstrap_servers

    def end_in(self, tps: Collection[TopicPartition], written: Mapping[TopicPartition, int] | None = None) -> str:
        """End what is known to hang in these partitions, and say why it did not; empty: nothing is open there any more.

        `written` is an offset of each partition whose transaction Kafka has told us to be committed.

        Raises:
            PortError, ConfigError: Kafka does not answer, or refuses.
        """
        from kgs_core.kafka.open_transactions import OpenTransactions  # with kafka-python, which few need

        kept: list[str] = []
        with OpenTransactions(self._topics.settings) as kafka:
            # First what is open, then what the coordinator says: so that what it says is over is not a later one
            found = kafka.found_in(tps)
            coordinator = kafka.coordinator_of(self._id)
            own = {each for each in found if each.start <= (written or {}).get(each.tp, -1)}
            why_not = {each: why_not_hanging(each, coordinator, self._id, is_own=each in own) for each in found}
            hanging = [each for each in found if not why_not[each]]
            kept += [f"{_named(each)}, which is left alone: {why}" for each, why in why_not.items() if why]
            outcomes = dict.fromkeys(own, True) | self._outcomes(kafka, [e for e in hanging if e not in own])
            kept += [why for each in hanging if (why := self._end(kafka, each, commit=outcomes[each]))]
        return "; ".join(kept) if found else "no transaction is open any more"

    def _end(self, kafka: "OpenTransactions", found: "OpenTransaction", *, commit: bool | str) -> str:
        from kgs_core.kafka.open_transactions import is_without_right

        what = f"{_named(found)}, and its coordinator has given it up"
        if isinstance(commit, str):
            return f"{what}: {commit}"
        leader = self._topics.admin.describe([found.tp.topic])[found.tp.topic].leaders.get(found.tp.partition)
        if leader is None:
            return f"{what}: the partition has no leader"
        try:
            kafka.end(found, leader, commit=commit)
        except PermanentError as e:
            if not is_without_right(e):  # a newer epoch has written there, say, and nothing is to be ended by hand
                return f"{what}: {e}"
            # Kafka's tool can only abort, which would tear a write that is committed elsewhere
            other_way = "" if commit else f", or {self._by_hand(found)}"
            return f"{what}: {e}: give this user ClusterAction on the cluster{other_way}"
        _log.warning("%s: %s it", what, "committed" if commit else "aborted")
        return ""

    def _outcomes(
        self, kafka: "OpenTransactions", hanging: Sequence["OpenTransaction"]
    ) -> dict["OpenTransaction", bool | str]:
        """Whether committed records prove every write in it, by one of it or one that followed; or why nobody knows."""
        if not hanging:
            return {}
        partitions = self._topics.partitions(GroupTopic.ASSIGNMENTS)
        # Asked before reading: what begins later stands behind all that was committed, and hides none of it
        ours = {each.producer_id for each in hanging}
        hiding = [each for each in kafka.found_in(partitions) if each.producer_id not in ours]
        starts = {each.tp: each.start for each in hanging}
        open_records: dict[TopicPartition, list[Record]] = {tp: [] for tp in starts}
        for tp, record in self._read(starts, "read_uncommitted"):
            open_records[tp].append(record)
        for tp, records in open_records.items():
            if not records or records[0].offset() != starts[tp]:
                raise TransientError(f"Kafka {self._where}: read {tp}: no open record at offset {starts[tp]}")
        since_ms = min(records[0].timestamp()[1] for records in open_records.values()) - _CLOCKS_APART_MS
        everything = self._topics.admin.offsets_at(partitions, since_ms)
        seen = {write_id_of(record) for _, record in self._read(everything, "read_committed")}
        return {each: self._outcome(each, open_records[each.tp], seen, hiding) for each in hanging}

    def _outcome(
        self,
        found: "OpenTransaction",
        records: Sequence[Record],
        seen: Collection[WriteId | None],
        hiding: Sequence["OpenTransaction"],
    ) -> bool | str:
        if write_id_of(records[0]) is None:
            return f"an older version of kgs wrote it: it is unknown whether it was committed: {self._by_hand(found)}"
        # Later writes of the same producer stand in the same open transaction, and one marker ends them all. Records
        # without an id are others'
        writes = {write_id for record in records if (write_id := write_id_of(record)) is not None}
        if all(any(each.is_proven_by(other) for other in seen) for each in writes):
            return True
        if hiding:
            return f"what shows if it was committed may be hidden behind another transaction: {_named(hiding[0])}"
        return False

    def _read(self, starts: Mapping[TopicPartition, int], isolation: str) -> Iterator[tuple[TopicPartition, Record]]:
        config = {**reading_client(self._topics.settings), "isolation.level": isolation}
        left, deadline = set(starts), time.monotonic() + _PATIENCE_S + self._topics.extra_time_s
        try:
            with closing(Consumer(python_settings(config))) as consumer:
                consumer.assign(
                    [KafkaPosition(tp.topic, tp.partition, offset) for tp, offset in sorted(starts.items())]
                )
                while left:
                    if time.monotonic() > deadline:
                        raise TransientError(f"Kafka {self._where}: read {min(left)}: no answer in time")
                    yield from self._sorted_out(arrived(consumer, _AT_ONCE, _POLL_S), left)
        except KafkaException as e:
            raise port_error(self._where, "read what shows if a write was committed", e.args[0]) from e

    def _sorted_out(
        self, events: Sequence[Record], left: set[TopicPartition]
    ) -> Iterator[tuple[TopicPartition, Record]]:
        """The records among the events; takes partitions that are read to their ends out of `left`."""
        for event in events:
            tp, error = TopicPartition(event.topic(), event.partition()), event.error()
            if error is None:
                yield tp, event
            elif error.code() == PARTITION_END:
                left.discard(tp)
            elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # no right on a group is needed to read
                raise port_error(self._where, f"read {tp}", error)

    def _by_hand(self, found: "OpenTransaction") -> str:
        tp = found.tp
        return (
            f"run `kafka-transactions.sh --bootstrap-server {self._where} abort --topic {tp.topic} "
            f"--partition {tp.partition} --start-offset {found.start}`"
        )


def _named(found: "OpenTransaction") -> str:
    return f"{found.tp}: producer {found.producer_id} has a transaction open from offset {found.start} on"


def why_not_hanging(
    found: "OpenTransaction", coordinator: "CoordinatorView | None", transactional_id: str, *, is_own: bool
) -> str:
    """Why an open transaction is not known to hang; empty: nobody but us will ever end it.

    Args:
        coordinator: what it said afterwards; None: it does not know the id.
        is_own: committed by this controller itself. Of all others it must have fenced the writer.
    """
    if coordinator is None:
        return f"Kafka knows no transactional id {transactional_id}"
    if found.producer_id != coordinator.producer_id:
        return f"it does not belong to {transactional_id}, whose producer is {coordinator.producer_id}"
    if coordinator.state not in _OVER:
        return f"its coordinator may still end it, and says {coordinator.state}"
    if found.producer_epoch > coordinator.producer_epoch:
        return f"its coordinator does not know it yet, and is at epoch {coordinator.producer_epoch}"
    if not is_own and found.producer_epoch == coordinator.producer_epoch:
        return f"it is as new as the controller's own (epoch {coordinator.producer_epoch})"
    return ""
