"""Topics, their ids and their offsets: what is asked of Kafka beside reading and writing."""

import time
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConsumerGroupDescription, OffsetSpec  # type: ignore[attr-defined]  # declares no re-exports
from confluent_kafka.cimpl import NewTopic

from kgs_core.config import Settings
from kgs_core.errors import PortError, TransientError
from kgs_core.kafka.client_config import TIME_OUTS, admin_client
from kgs_core.kafka.clients import RotatingClient
from kgs_core.kafka.errors import NO_ANSWER, ConnectionWatch, is_stale, port_error
from kgs_core.kafka.silent_brokers import ANSWER_S, SHORT_S, Question, ask, in_thread
from kgs_core.kafka.topic_description import TopicDescription, described, topic_id_of
from kgs_core.model import TopicId, TopicPartition

CLUSTER_DEFAULT = -1
"""Number of replicas of a topic, where `default.replication.factor` of the brokers says it."""
_SETTLE_TIMEOUT_S = 10.0
_SETTLE_EACH_S = 0.02  # more for each partition that is made
_POLL_S = 0.02
_ELECTION_FACTOR = 2.0
"""How much longer offsets are asked for: rule 11 of `silent_brokers`."""
_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__share_group_state", "__transaction_state"})  # Kafka's own list
_DEFAULTS: Mapping[str, str | int | bool] = {
    "client.id": "kgs-admin",
    "log_level": 2,  # librdkafka's lines on stderr say what our errors say, twenty times a second
    "allow.auto.create.topics": False,
    "enable.sparse.connections": False,  # rule 10 of `silent_brokers`
    **TIME_OUTS,
}

_Key = TypeVar("_Key", bound=Hashable)
_Question = Question[AdminClient, _Key]
_Answers = Mapping[_Key, Any]  # confluent-kafka types its futures' results not at all
_TIMEOUT_S = 8.0


def admin_of(settings: Settings, timeout_s: float = _TIMEOUT_S) -> "KafkaAdmin":
    """The administration of the Kafka that the settings name."""
    return KafkaAdmin(admin_client(settings), timeout_s)


class KafkaAdmin:
    """Kafka's administration; may be used by several threads.

    Every method raises TransientError (no answer within `timeout_s` seconds, no leader yet, unknown host) or
    PermanentError (denied, wrong password or TLS settings, refused by the broker).
    """

    def __init__(self, config: Mapping[str, str | int], timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._watch = ConnectionWatch()
        self._where = str(config.get("bootstrap.servers", "without bootstrap.servers"))
        settings: dict[str, Any] = {**_DEFAULTS, **config, "error_cb": self._watch.note}
        self._made = RotatingClient(settings, AdminClient)

    def choose_anew(self) -> None:
        """Ask by a new client from now on, which may choose another broker.

        Raises:
            PortError: there cannot be one now.
        """
        self._made.renew()

    def create_topic(
        self, name: str, partitions: int, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> bool:
        """Creates a topic and waits until all its partitions are served; False if there was one of that name."""
        what = f"create topic '{name}'"
        new = NewTopic(name, partitions, replication, config=dict(config or {}))
        error = self._errors(what, lambda c, s: c.create_topics([new], request_timeout=s)).get(name)
        if error is not None and error.name() != "TOPIC_ALREADY_EXISTS":
            raise self._error(what, error)
        self._settle(what, lambda: self._is_served(name, 1 if error is not None else partitions), partitions)
        return error is None

    def topic_ids(self, topics: Collection[str]) -> dict[str, TopicId | None]:
        """The id of each topic; None: there is no such topic."""
        known = self.describe(topics)
        return {topic: known[topic].topic_id if topic in known else None for topic in topics}

    def each_topic_id(self, topics: Collection[str]) -> dict[str, TopicId | PortError | None]:
        """As `topic_ids`, where what was refused or not answered of one topic is that topic's answer."""
        wanted = TopicCollection(sorted(set(topics)))
        answers = self._gather("describe topics", lambda c, s: c.describe_topics(wanted, request_timeout=s))
        found: dict[str, TopicId | PortError | None] = {}
        for topic, answer in answers.items():
            if not isinstance(answer, KafkaError):
                found[topic] = topic_id_of(answer.topic_id)
            elif answer.name() == "UNKNOWN_TOPIC_OR_PART":
                found[topic] = None
            else:
                found[topic] = self._error(f"describe topic '{topic}'", answer)
        return found

    def describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        """Each topic that exists; an UnsafeError where one has no id, by which it is told from one made again."""
        if not topics:
            return {}
        wanted = TopicCollection(sorted(set(topics)))
        what = "describe topics"
        answers = self._ask(what, lambda c, s: c.describe_topics(wanted, request_timeout=s))
        found = {}
        for topic, answer in answers.items():
            if not isinstance(answer, KafkaError):
                found[topic] = described(self._where, topic, answer)
            elif answer.name() != "UNKNOWN_TOPIC_OR_PART":
                raise self._error(f"describe topic '{topic}'", answer)
        return found

    def list_topics(self) -> list[str]:
        """Names of all topics but Kafka's internal ones, sorted."""
        answer = self._answer("list topics", lambda c, s: in_thread(lambda: c.list_topics(timeout=s)), ANSWER_S)
        return sorted(set(answer.topics) - _INTERNAL_TOPICS)

    def offsets(
        self, tps: Collection[TopicPartition], which: Literal["earliest", "latest"], *, committed_reads: bool = False
    ) -> dict[TopicPartition, int]:
        """The first offset that is still there, or the next one to be written.

        With `committed_reads`, "latest" is where a read_committed reader must stop: before the first open transaction.
        """
        spec = getattr(OffsetSpec, which)()
        return self._list_offsets(f"{which} offsets", tps, spec, committed_reads=committed_reads)

    def each_offset(
        self, tps: Collection[TopicPartition], which: Literal["earliest", "latest"], *, committed_reads: bool = False
    ) -> dict[TopicPartition, int | PortError]:
        """As `offsets`, where what was refused or not answered of one partition is that partition's answer."""
        if not tps:
            return {}
        what, spec = f"{which} offsets", getattr(OffsetSpec, which)()
        answers = self._gather(what, _offset_question(tps, spec, committed_reads=committed_reads), ANSWER_S)
        found: dict[TopicPartition, int | PortError] = {}
        for theirs, answer in answers.items():
            tp = TopicPartition(theirs.topic, theirs.partition)
            is_error = isinstance(answer, KafkaError)
            found[tp] = self._error(f"{what} of {tp}", answer) if is_error else int(answer.offset)
        return found

    def offsets_at(
        self, tps: Collection[TopicPartition], timestamp_ms: int, *, committed_reads: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset of the first record with this timestamp (ms since 1970) or a later one; without one, the end.

        With `committed_reads`, of the records before the first open transaction, and the end is there.
        """
        # The ends are asked first: a record that comes in between must not be passed over
        ends = self.offsets(tps, "latest", committed_reads=committed_reads)
        spec = OffsetSpec.for_timestamp(timestamp_ms)
        found = self._list_offsets("offsets by time", tps, spec, committed_reads=committed_reads)
        return {tp: offset if offset >= 0 else ends[tp] for tp, offset in found.items()}

    def newest_timestamp(self, tp: TopicPartition) -> int | None:
        """The latest timestamp of the partition's records, ms since 1970; None without records."""
        what, spec = "newest timestamp", OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # theirs
        question = _offset_question([tp], spec)
        answers = self._ask(what, question, ANSWER_S, patience=_ELECTION_FACTOR)
        timestamp = int(self._by_partition(what, answers)[tp].timestamp)
        return timestamp if timestamp >= 0 else None

    def racks(self) -> dict[int, str | None]:
        """`broker.rack` of each broker by its id; None: it has none."""
        answer = self._answer("describe the cluster", lambda c, s: {None: c.describe_cluster(request_timeout=s)})
        return {node.id: node.rack or None for node in answer.nodes}

    def topic_config(self, topic: str) -> dict[str, str]:
        """The settings that hold for a topic, its own and the cluster's."""
        what, resource = f"settings of topic '{topic}'", ConfigResource(ConfigResource.Type.TOPIC, topic)
        answer = self._answer(what, lambda c, s: c.describe_configs([resource], request_timeout=s))
        return {name: str(entry.value) for name, entry in answer.items()}

    def list_groups(self) -> list[str]:
        """Names of all consumer groups that this user may see, sorted."""
        what, started = "list groups", time.monotonic()
        answer = self._answer(what, lambda c, s: {None: c.list_consumer_groups(request_timeout=s)}, ANSWER_S)
        if answer.errors:
            raise self._error(what, answer.errors[0], started)
        return sorted(each.group_id for each in answer.valid)

    def describe_group(self, group: str) -> ConsumerGroupDescription:
        """State and members of a consumer group."""
        what = f"describe group {group!r}"
        found: ConsumerGroupDescription = self._answer(
            what, lambda c, s: c.describe_consumer_groups([group], request_timeout=s), ANSWER_S
        )
        return found

    def committed_offsets(self, group: str) -> list[ClientTopicPartition]:
        """What a consumer group has committed, of all partitions."""
        what = f"offsets that group {group!r} has committed"
        wanted = [ConsumerGroupTopicPartitions(group)]
        answer = self._answer(what, lambda c, s: c.list_consumer_group_offsets(wanted, request_timeout=s), ANSWER_S)
        return list(answer.topic_partitions)

    def delete_group(self, group: str) -> bool:
        """Deletes a group without members, with its offsets; False if there was none."""
        what = f"delete group '{group}'"
        # It ends with its client: librdkafka 2.16 uses freed memory if the coordinator is back after one that timed out
        error = self._errors(what, lambda c, _: c.delete_consumer_groups([group], request_timeout=3600.0)).get(group)
        if error is not None and error.name() != "GROUP_ID_NOT_FOUND":
            raise self._error(what, error)
        return error is None

    def _list_offsets(
        self, what: str, tps: Collection[TopicPartition], spec: OffsetSpec, *, committed_reads: bool = False
    ) -> dict[TopicPartition, int]:
        if not tps:
            return {}
        question = _offset_question(tps, spec, committed_reads=committed_reads)
        answers = self._ask(what, question, ANSWER_S, patience=_ELECTION_FACTOR)
        return {tp: int(answer.offset) for tp, answer in self._by_partition(what, answers).items()}

    def _by_partition(self, what: str, answers: _Answers[ClientTopicPartition]) -> dict[TopicPartition, Any]:
        result = {}
        for theirs, answer in answers.items():
            tp = TopicPartition(theirs.topic, theirs.partition)
            if isinstance(answer, KafkaError):
                raise self._error(f"{what} of {tp}", answer)
            result[tp] = answer
        return result

    def _is_served(self, name: str, partitions: int) -> bool:
        """Whether the leader of every partition answers; a description comes from one broker, maybe ahead of them."""
        known = self.describe([name]).get(name)
        if known is None or known.partitions < partitions:
            return False
        try:
            self.offsets([TopicPartition(name, number) for number in range(known.partitions)], "latest")
        except TransientError:
            return False
        return True

    def _settle(self, what: str, done: Callable[[], bool], partitions: int = 0) -> None:
        """Waits for what Kafka has accepted and carries out in the background, for so many partitions."""
        patience_s = _SETTLE_TIMEOUT_S + partitions * _SETTLE_EACH_S
        deadline = time.monotonic() + patience_s
        while not done():
            if time.monotonic() > deadline:
                raise TransientError(f"Kafka {self._where}: {what}: not carried out in {patience_s:.0f} s")
            time.sleep(_POLL_S)

    def _errors(self, what: str, change: _Question[_Key]) -> dict[_Key, KafkaError]:
        found = self._ask(what, change, once=True)
        return {key: answer for key, answer in found.items() if isinstance(answer, KafkaError)}

    def _answer(self, what: str, question: _Question[_Key], attempt_s: float = SHORT_S) -> Any:
        """As `_ask`, of the one subject that the request has."""
        (answer,) = self._ask(what, question, attempt_s).values()
        if isinstance(answer, KafkaError):
            raise self._error(what, answer)
        return answer

    def _ask(
        self,
        what: str,
        question: _Question[_Key],
        attempt_s: float = SHORT_S,
        *,
        patience: float = 1.0,
        once: bool = False,
    ) -> dict[_Key, Any]:
        """Sends a request; the answer of each of its subjects is a result or a KafkaError of its own."""
        started = time.monotonic()
        found = self._gather(what, question, attempt_s, patience=patience, once=once)
        for answer in found.values():
            if isinstance(answer, KafkaError) and answer.name() in NO_ANSWER:
                raise self._error(what, answer, started)
        return found

    def _gather(
        self,
        what: str,
        question: _Question[_Key],
        attempt_s: float = SHORT_S,
        *,
        patience: float = 1.0,
        once: bool = False,
    ) -> dict[_Key, Any]:
        """As `_ask`, where no answer from a broker is an answer of each of its subjects."""
        started, timeout_s = time.monotonic(), self._timeout_s * patience
        try:
            found = ask(self._made, question, timeout_s, attempt_s, once=once)
            if any(map(is_stale, found.values())):
                # librdkafka would go by the leaders and epochs that it remembers for 15 minutes, whatever the answers
                # are. All topics in one request: to ask for one by its name could make one again that was just deleted.
                ends_at = started + timeout_s
                with suppress(KafkaException):
                    self._made.get().list_topics(timeout=max(0.1, ends_at - time.monotonic()))
                found = ask(self._made, question, max(0.1, ends_at - time.monotonic()), attempt_s, once=once)
        except TimeoutError as error:
            raise TransientError(f"Kafka {self._where}: {what}: no answer in {timeout_s:g} s") from error
        except KafkaException as error:
            raise self._error(what, error.args[0], started) from error
        return found

    def _error(self, what: str, error: KafkaError, started: float | None = None) -> PortError:
        self._made.get().poll(0)  # delivers the connection errors
        cause = self._watch.cause_since(started) if started is not None else None
        return port_error(self._where, what, error, cause)


def _offset_question(
    tps: Collection[TopicPartition], spec: OffsetSpec, *, committed_reads: bool = False
) -> _Question[ClientTopicPartition]:
    wanted = {ClientTopicPartition(tp.topic, tp.partition): spec for tp in tps}
    isolation = IsolationLevel.READ_COMMITTED if committed_reads else IsolationLevel.READ_UNCOMMITTED
    return lambda client, s: client.list_offsets(wanted, isolation_level=isolation, request_timeout=s)
