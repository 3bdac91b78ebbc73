"""The topics through which controller, consumers and people speak: made, checked, and known by their ids.

Rights that each role needs (Kafka's are per topic, which is why there are three; Read and Write imply Describe):

- controller: Read and Write on `consumer.metadata`, Read on `operator.metadata` and `controller.metadata`, Write on the
  transactional id `<group>-controller`, DescribeConfigs on the three topics, and Create on those it is to make itself.
- consumer: Read on `consumer.metadata`, Write on `controller.metadata`. No Write on `consumer.metadata`: else it could
  forge the controller's assignments.
- operator: Read and Write on `operator.metadata`.
- viewer (`kgs status`, the sensor): Read on the three topics.

None of them needs a right on a consumer group for these topics, nor on the cluster. With ClusterAction the controller
can end a transaction that Kafka leaves hanging (`hanging_transactions`); without, it says what a person can run.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum

from kgs_core.config import Settings
from kgs_core.config.membership import REPORT_RETENTION_H
from kgs_core.errors import ConfigError, PermanentError, UnsafeError
from kgs_core.kafka.admin import CLUSTER_DEFAULT, KafkaAdmin
from kgs_core.kafka.topic_description import TopicDescription, message_limit_problems
from kgs_core.model import ConsumerId, TopicId, TopicPartition

METADATA_PARTITIONS = 64
"""Of the Assignments' topic when it is made. A change costs a request for each partition that it writes to, so that
more of them would slow down hundreds of consumers; with fewer, each would read past more of what is others'.
"""
MAX_RECORD_BYTES = 8_388_608
"""Of one record as the brokers get it, compressed; before that a message has `codec.MAX_BYTES` at most."""
CHECK_EVERY_S = 10.0
CONFIRMATIONS = 3
CONFIRM_AFTER_S = 0.7
_EXTRA_S_PER_PARTITION = 0.02
_WITHOUT_EXTRA_TIME = 100
_HOUR_MS = 3_600_000
_log = logging.getLogger(__name__)


class GroupTopic(StrEnum):
    """Which of the group's topics, by the last part of its name."""

    ASSIGNMENTS = "consumer.metadata"
    """The Target in partition 0, the Assignments of consumers in the others, see `GroupTopics.queue`."""
    OPERATOR = "operator.metadata"
    """Of people."""
    REPORTS = "controller.metadata"
    """Of consumers, to the controller."""

    def of(self, group: str) -> str:
        """The topic's full name."""
        return f"kgs.{group}.{self}"


def create_topics(settings: Settings, admin: KafkaAdmin) -> None:
    """Makes the topics that are missing; a ConfigError names all that is wrong with those that are there.

    Killed on the way, it makes the rest when it is called again.
    """
    names = {each: each.of(settings.group) for each in GroupTopic}
    known = admin.describe(names.values())
    problems = []
    for each, name in names.items():
        if name not in known:
            partitions = METADATA_PARTITIONS if each is GroupTopic.ASSIGNMENTS else 1
            if admin.create_topic(name, partitions, CLUSTER_DEFAULT, _config(each)):
                _log.info("created topic=%s", name)
                continue
            known |= admin.describe([name])  # somebody else was faster
        problems += _partition_problems(settings, each, known[name])
        problems += _config_problems(settings, each, admin.topic_config(name))
    if problems:
        raise ConfigError(problems)


def transactional_id_of(settings: Settings) -> str:
    """What all controllers of the group write by, so that each new one fences those before."""
    return f"{settings.group}-controller"


class GroupTopics:
    """The group's topics as they were when they were opened; a topic that is made again is another one.

    Attributes:
        written: partition -> offset and time (`time.monotonic`) of the newest record that this process has committed
            there since it last fenced others, or failed to write.
    """

    def __init__(
        self, settings: Settings, admin: KafkaAdmin, which: Collection[GroupTopic] = tuple(GroupTopic)
    ) -> None:
        """Open topics that exist, those that this role has rights on; each with the partitions that it needs.

        Raises:
            PermanentError: one does not exist.
            ConfigError: one has too few or too many partitions.
            TransientError: no answer.
        """
        self.settings = settings
        self.admin = admin
        self.written: dict[TopicPartition, tuple[int, float]] = {}
        self._names = {each: each.of(settings.group) for each in which}
        known = self._described(lambda known: known.keys() >= {*self._names.values()})
        missing = [name for name in self._names.values() if name not in known]
        if missing:
            raise PermanentError(
                f"Kafka {settings.kafka.bootstrap_servers}: no topic {', '.join(missing)}: start the controller "
                "first, which makes its topics, or check `group`"
            )
        problems = [p for each, name in self._names.items() for p in _partition_problems(settings, each, known[name])]
        if problems:
            raise ConfigError(problems)
        self._ids: Mapping[str, TopicId] = {name: found.topic_id for name, found in known.items()}
        self._known = known
        self._checked_at = time.monotonic()

    def name(self, which: GroupTopic) -> str:
        """The topic's full name."""
        return self._names[which]

    def partitions(self, which: GroupTopic) -> tuple[TopicPartition, ...]:
        """All partitions of the topic, as of the last check."""
        name = self._names[which]
        return tuple(TopicPartition(name, number) for number in range(self._known[name].partitions))

    @property
    def extra_time_s(self) -> float:
        """See the function of this name: for a transaction to every queue."""
        which = GroupTopic.ASSIGNMENTS
        return extra_time_s(len(self.partitions(which))) if which in self._names else 0.0

    def queue(self, consumer: ConsumerId) -> int:
        """Partition of the consumer's Assignments: that of its number, and after the last one the first again."""
        return 1 + (consumer - 1) % (self._known[self._names[GroupTopic.ASSIGNMENTS]].partitions - 1)

    def check(self) -> None:
        """See that these are the topics that were opened; an UnsafeError where one was made again or has grown."""
        ids = self._ids.items()
        known = self._described(lambda known: all(n in known and known[n].topic_id == opened for n, opened in ids))
        for name, opened in self._ids.items():
            now = known[name].topic_id if name in known else None
            if now != opened:
                raise UnsafeError(
                    f"topic {name}: opened as topic id {opened}, Kafka now has {now or 'no such topic'}: it was deleted"
                    + (" and made again" if now else "")
                    + " while this process used it: what it said is lost; start this process again"
                )
            before, count = self._known[name].partitions, known[name].partitions
            if count != before:
                raise UnsafeError(f"topic {name}: had {before} partitions, has {count}: start this process again")
        self._known, self._checked_at = known, time.monotonic()

    def _described(self, is_expected: Callable[[Mapping[str, TopicDescription]], bool]) -> dict[str, TopicDescription]:
        known = self.admin.describe(self._names.values())
        for _ in range(CONFIRMATIONS):
            if is_expected(known):
                break
            # A broker that lags or is cut off does not know a new topic yet (rule 9 of `silent_brokers`)
            time.sleep(CONFIRM_AFTER_S)
            self.admin.choose_anew()
            known = self.admin.describe(self._names.values())
        return known

    def check_now_and_then(self) -> None:
        """As `check`, at most once in ten seconds. While Kafka does not answer, every call asks.

        Raises:
            UnsafeError, PortError: see `check`.
        """
        if time.monotonic() - self._checked_at >= CHECK_EVERY_S:
            self.check()


def extra_time_s(partitions: int) -> float:
    """What a transaction may take longer that goes to so many partitions: each costs a request of its own."""
    return _EXTRA_S_PER_PARTITION * max(0, partitions - _WITHOUT_EXTRA_TIME)


def _config(which: GroupTopic) -> dict[str, str]:
    config = {"max.message.bytes": str(MAX_RECORD_BYTES), **_required(which)}
    # The segment that is written to is neither compacted nor deleted: by Kafka's default it may be a week old
    config["segment.ms"] = str(_HOUR_MS // 6)
    if which is GroupTopic.REPORTS:
        return config | {"retention.ms": str(REPORT_RETENTION_H * _HOUR_MS)}
    # A tombstone must outlive the reports of whom it speaks, or a dead incarnation looks like a new one
    kept_h = REPORT_RETENTION_H + 24
    return config | {"min.cleanable.dirty.ratio": "0.1", "delete.retention.ms": str(kept_h * _HOUR_MS)}


def _required(which: GroupTopic) -> dict[str, str]:
    """Without these the protocol does not hold, whoever made the topic."""
    return {
        "cleanup.policy": "delete" if which is GroupTopic.REPORTS else "compact",
        # Silence is measured by the brokers' clock; a consumer's own may be anything
        "message.timestamp.type": "LogAppendTime",
    }


def _partition_problems(settings: Settings, which: GroupTopic, found: TopicDescription) -> list[str]:
    topic = which.of(settings.group)
    if which is GroupTopic.ASSIGNMENTS and found.partitions == 1:
        return [
            f"topic {topic}: has one partition, two are the least: `kafka-topics.sh --alter --topic {topic} "
            f"--partitions {METADATA_PARTITIONS}`"
        ]
    if which is not GroupTopic.ASSIGNMENTS and found.partitions != 1:
        return [f"topic {topic}: has {found.partitions} partitions, must have one: delete it, kgs makes it again"]
    return []


def _config_problems(settings: Settings, which: GroupTopic, found: Mapping[str, str]) -> list[str]:
    topic = which.of(settings.group)
    problems = [
        f"topic {topic}: {name} is {found.get(name)}, must be {wanted}: `kafka-configs.sh --alter --topic {topic} "
        f"--add-config {name}={wanted}`"
        for name, wanted in _required(which).items()
        if found.get(name) != wanted
    ]
    return problems + message_limit_problems(topic, found, MAX_RECORD_BYTES)
