"""The topics of one consumer: opened when first needed, looked after between rounds."""

import logging
import sys
from collections.abc import Callable, Collection

from kgs_core.adapters.kafka_admin import KafkaAdmin, TopicDescription
from kgs_core.adapters.topic_opening import TopicOpener, recreated
from kgs_core.adapters.topic_state import TopicState
from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError, UnsafeError
from kgs_core.model import TopicPartition

PartitionsOf = Callable[[str, int], frozenset[int]]
"""Topic and how many partitions it has -> those that are ours."""
NO_RULE = "no rule of this consumer's configuration fits it: add one under topics"
NO_TOPIC = "Kafka has no such topic or partition"
NOT_YET = "not read yet: Kafka or the lake does not answer"
_log = logging.getLogger(__name__)


class OwnedTopics:
    """Which partitions are ours comes from outside; a topic that fails is left out, loudly, and holds up no other.

    Attributes:
        states: what is open.
        problems: topic -> why it could not be opened, or why its positions could not be read.
    """

    def __init__(self, settings: Settings, admin: KafkaAdmin, opener: TopicOpener) -> None:
        self.states: dict[str, TopicState] = {}
        self.problems: dict[str, str] = {}
        self._settings = settings
        self._admin = admin
        self._opener = opener
        self._counts: dict[str, int] = {}

    def refresh_all(self, partitions_of: PartitionsOf, *, first: bool) -> None:
        """Look for all topics and partitions that came, went or changed; ask the tables where stopped ones stand.

        Raises:
            UnsafeError, ConfigError: at the first time; later such a topic is left out.
            TransientError: Kafka or the lake does not answer.
        """
        specs = resolve_tables(self._settings, self._admin.list_topics())
        described = self._admin.describe(specs)
        for topic, found in described.items():
            if topic in self.states or partitions_of(topic, found.partitions):
                try:
                    self._refresh(specs[topic], found, partitions_of)
                except (ConfigError, UnsafeError) as e:
                    if first:
                        raise
                    self._leave_out(topic, e)
        self._leave_out_vanished(set(self.states) - set(described))

    def refresh(self, topics: Collection[str], partitions_of: PartitionsOf) -> float | None:
        """As `refresh_all`, of these topics only, and none holds up another; each is opened, owned or not.

        Returns:
            After how many seconds another try is worth it; None when all went well, or will not go better soon.

        Raises:
            TransientError: Kafka does not answer.
        """
        described = self._describe(topics)
        again = [self._refresh_safely(topic, described[topic], partitions_of) for topic in sorted(described)]
        return min((seconds for seconds in again if seconds is not None), default=None)

    def _describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        """What Kafka says of them, without those that are not there or are refused to us; these are left out."""
        try:
            described = self._admin.describe(topics)
        except PermanentError as e:
            if len(topics) > 1:
                return {topic: found for name in topics for topic, found in self._describe([name]).items()}
            self._leave_out(next(iter(topics)), e)
            return {}
        self._leave_out_vanished(set(topics) - set(described))
        return described

    def own(self, topic: str, partitions: frozenset[int]) -> bool:
        """Own exactly these of a topic's, at the table's positions; False where the topic must be refreshed for it.

        Raises:
            TransientError: the lake does not answer.
            UnsafeError: the table breaks the guarantee.
        """
        state = self.states.get(topic)
        if state is None or topic in self.problems or max(partitions, default=0) >= self._counts.get(topic, 0):
            return False
        if partitions != state.owned:
            state.own(partitions)
        return True

    def let_go(self, kept: Collection[TopicPartition], coming: Collection[TopicPartition]) -> None:
        """Forget everything about other partitions, positions first of all; a topic without any is closed."""
        topics = {tp.topic for tp in (*kept, *coming)}
        for topic, state in list(self.states.items()):
            state.give_up(frozenset(p for p in state.owned if TopicPartition(topic, p) not in kept))
            if topic not in topics:
                del self.states[topic]
        self.problems = {topic: why for topic, why in self.problems.items() if topic in topics}

    def reasons(self, owned: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Why those of `owned` that stand still do so."""
        found = {}
        for tp in owned:
            state = self.states.get(tp.topic)
            if state is None or tp.partition not in state.owned:
                is_known = tp.partition < self._counts.get(tp.topic, sys.maxsize)
                found[tp] = self.problems.get(tp.topic, NOT_YET if is_known else NO_TOPIC)
            elif tp.partition in state.stopped:
                found[tp] = state.stopped[tp.partition].reason
        return found

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset to read of each partition that is owned."""
        return {TopicPartition(s.topic, p): s.positions[p] for s in self.states.values() for p in s.owned}

    def _refresh_safely(self, topic: str, found: TopicDescription, partitions_of: PartitionsOf) -> float | None:
        try:
            self._refresh(self._spec(topic), found, partitions_of)
        except (ConfigError, PortError) as e:
            self._leave_out(topic, e)
            return e.retry_after_s if isinstance(e, TransientError) else None
        return None

    def _spec(self, topic: str) -> TableSpec:
        spec = resolve_tables(self._settings, [*self.states, topic]).get(topic)
        if spec is None:
            raise ConfigError([f"topic {topic}: {NO_RULE}"])
        return spec

    def _refresh(self, spec: TableSpec, found: TopicDescription, partitions_of: PartitionsOf) -> None:
        topic = spec.topic
        if topic not in self.states:
            self.states[topic] = TopicState(self._opener.open(spec, found.topic_id, found.partitions))
        state = self.states[topic]
        ours = state.table.ids.topic_id
        if ours != found.topic_id:
            raise UnsafeError(recreated(topic, [ours], found.topic_id))
        owned = partitions_of(topic, found.partitions)
        if owned != state.owned or state.stopped:
            state.own(owned)
        self._counts[topic] = found.partitions
        self.problems.pop(topic, None)

    def _leave_out_vanished(self, topics: Collection[str]) -> None:
        for topic in topics:
            state = self.states.get(topic)
            gone = recreated(topic, [state.table.ids.topic_id], None) if state else f"topic {topic}: {NO_TOPIC}"
            self._leave_out(topic, UnsafeError(gone))

    def _leave_out(self, topic: str, error: Exception) -> None:
        if self.problems.get(topic) != str(error):
            _log.error("topic left out: %s", error)
        self.problems[topic] = str(error)
        state = self.states.get(topic)
        if state is not None and not isinstance(error, TransientError):
            state.stop(dict.fromkeys(state.owned, str(error)))
