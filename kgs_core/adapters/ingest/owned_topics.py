"""The topics of one consumer: opened when first needed, looked after between rounds."""

import logging
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from kgs_core.adapters.ingest.topic_opener import TopicOpener
from kgs_core.adapters.ingest.topic_state import TopicState
from kgs_core.adapters.kafka.admin import KafkaAdmin
from kgs_core.adapters.kafka.topic_description import TopicDescription
from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.consumer.round.answers import other_topic
from kgs_core.consumer.round.stops import StopCause
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError, UnsafeError
from kgs_core.model import TopicPartition

PartitionsOf = Callable[[str, int], frozenset[int]]
"""Topic and how many partitions it has -> those that are ours."""
NO_RULE = "no rule of this consumer's configuration fits it: add one under topics"
NO_TOPIC = "Kafka has no such topic or partition"
MISSING_AGAIN_S = 2.0
UNKNOWN_AGAIN_S = 10.0
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
        self._missing: frozenset[str] = frozenset()

    def refresh_all(self, partitions_of: PartitionsOf, *, first: bool) -> None:
        """Look for all topics and partitions that came, went or changed; ask the tables where stopped ones stand.

        Raises:
            PortError, ConfigError: at the first time. Later such a topic is left out, and what is open is read on.
        """
        if first:
            specs = resolve_tables(self._settings, self._admin.list_topics())
            for topic, found in self._admin.describe(specs).items():
                if partitions_of(topic, found.partitions):
                    self._refresh(specs[topic], found, partitions_of)
            return
        try:
            ruled = {topic for topic in self._admin.list_topics() if self._settings.rule_of(topic) is not None}
            described = self._describe(ruled | self.states.keys())
        except PortError as e:
            _log.warning("topics are not looked after for now: %s", e)
            return
        for topic, found in sorted(described.items()):
            if topic in self.states or partitions_of(topic, found.partitions):
                self._refresh_safely(topic, found, partitions_of)

    def refresh(self, topics: Collection[str], partitions_of: PartitionsOf) -> float | None:
        """As `refresh_all`, of these topics only, and none holds up another; each is opened, owned or not.

        Returns:
            After how many seconds another try is worth it; None when all went well, or will not go better soon.
        """
        try:
            described = self._describe(topics)
        except TransientError as e:  # what is open is read on: its leaders may answer
            _log.warning("topics are not looked after for now: %s", e)
            return e.retry_after_s
        again = [self._refresh_safely(topic, described[topic], partitions_of) for topic in sorted(described)]
        if self._misses_more(topics, described, partitions_of):
            again.append(MISSING_AGAIN_S)
        return min((seconds for seconds in again if seconds is not None), default=None)

    def _misses_more(
        self, topics: Collection[str], described: Mapping[str, TopicDescription], partitions_of: PartitionsOf
    ) -> bool:
        """Whether a topic or partition is missing that was not missing before: a broker that lags says so, too."""
        before = self._missing
        beyond = {t for t, d in described.items() if max(partitions_of(t, sys.maxsize), default=0) >= d.partitions}
        self._missing = frozenset(beyond | (set(topics) - set(described)))
        return not self._missing <= before

    def _describe(self, topics: Collection[str]) -> dict[str, TopicDescription]:
        """What Kafka says of them, without those that are not there or are refused to us; these are left out."""
        try:
            described = self._admin.describe(topics)
        except PermanentError as e:
            if len(topics) > 1:
                return {topic: found for name in topics for topic, found in self._describe([name]).items()}
            self._leave_out(next(iter(topics)), e)
            return {}
        for topic in set(topics) - set(described):
            self._note_missing(topic)
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
        if partitions != state.progress.owned:
            state.own(partitions)
        return True

    def let_go(self, kept: Collection[TopicPartition], pending: Collection[TopicPartition]) -> None:
        """Forget everything about other partitions, positions first of all; a topic without any is closed."""
        topics = {tp.topic for tp in (*kept, *pending)}
        for topic, state in list(self.states.items()):
            state.give_up(frozenset(p for p in state.progress.owned if TopicPartition(topic, p) not in kept))
            if topic not in topics:
                del self.states[topic]
        self.problems = {topic: why for topic, why in self.problems.items() if topic in topics}

    def reasons(self, owned: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Why those of `owned` that stand still do so."""
        found = {}
        for tp in owned:
            state = self.states.get(tp.topic)
            if state is None or tp.partition not in state.progress.owned:
                is_known = tp.partition < self._counts.get(tp.topic, sys.maxsize)
                found[tp] = self.problems.get(tp.topic, NOT_YET if is_known else NO_TOPIC)
            elif (stop := state.progress.reported_stops.get(tp.partition)) is not None:
                found[tp] = stop.reason
        return found

    def openable(self, pending: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of `pending` whose topic is open, so that they can be read as soon as they are given."""
        is_open = self.states.keys() - self.problems.keys()
        return frozenset(tp for tp in pending if tp.topic in is_open and tp.partition < self._counts.get(tp.topic, 0))

    def problem_of(self, tp: TopicPartition) -> str | None:
        """Why a partition that is not ours cannot be read, either; None where nothing is known against it."""
        is_known = tp.partition < self._counts.get(tp.topic, sys.maxsize)
        return self.problems.get(tp.topic, None if is_known else NO_TOPIC)

    def positions(self) -> dict[TopicPartition, int]:
        """Next offset to read of each partition that is owned."""
        held = [state.progress for state in self.states.values()]
        return {TopicPartition(t.topic, p): t.positions[p] for t in held for p in t.owned}

    def _refresh_safely(self, topic: str, found: TopicDescription, partitions_of: PartitionsOf) -> float | None:
        try:
            self._refresh(self._spec(topic), found, partitions_of)
        except (ConfigError, PortError) as e:
            self._leave_out(topic, e)
            return e.retry_after_s if isinstance(e, TransientError) else None
        except (Exception, SystemExit) as e:  # noqa: BLE001 - of the user's code, or of a library that no adapter knows
            unknown = TransientError(f"topic {topic}: {type(e).__name__}: {e}", UNKNOWN_AGAIN_S)
            self._leave_out(topic, unknown)
            return unknown.retry_after_s
        return None

    def _spec(self, topic: str) -> TableSpec:
        spec = resolve_tables(self._settings, [*self.states, topic]).get(topic)
        if spec is None:
            raise ConfigError([f"topic {topic}: {NO_RULE}"])
        return spec

    def _refresh(self, spec: TableSpec, found: TopicDescription, partitions_of: PartitionsOf) -> None:
        topic = spec.topic
        state = self.states.get(topic)
        if state is None or state.table.ids.topic_id != found.topic_id:
            # One that was made again is refused by this, unless somebody has accepted it since.
            state = self._opened(spec, found)
        owned = partitions_of(topic, found.partitions)
        if owned != state.progress.owned or state.progress.stops:
            state.own(owned)
        if topic in self.problems:
            state.progress = replace(state.progress.looking_at_once(time.monotonic()), is_missing=False)
        self._counts[topic] = found.partitions
        self.problems.pop(topic, None)

    def _opened(self, spec: TableSpec, found: TopicDescription) -> TopicState:
        new = TopicState(self._opener.open(spec, found.topic_id, found.partitions))
        self.states[spec.topic] = new
        return new

    def _note_missing(self, topic: str) -> None:
        """Kafka says that there is no such topic."""
        state = self.states.get(topic)
        if state is None:
            self._leave_out(topic, UnsafeError(f"topic {topic}: {NO_TOPIC}"))
            return
        trouble = other_topic(state.progress, None)
        state.progress = replace(state.progress, is_missing=True)
        state.stop(dict.fromkeys(state.progress.owned, trouble.reason), trouble.cause)
        self.problems[topic] = trouble.reason

    def _leave_out(self, topic: str, error: Exception) -> None:
        if self.problems.get(topic) != str(error):
            _log.error("topic left out: %s", error)
        self.problems[topic] = str(error)
        state = self.states.get(topic)
        if state is not None and not isinstance(error, TransientError):
            cause = StopCause.TABLE if isinstance(error, UnsafeError) else StopCause.DENIED
            state.stop(dict.fromkeys(state.progress.owned, str(error)), cause)
