"""The topics of one consumer: opened when first needed, looked after between rounds.

Tables are asked by threads beside the rounds (`opening_threads`), which change nothing here: what they find is taken in
between two rounds, by `take_in`, and only for partitions that have been wanted all the while. So a partition is let go
at once, also in the middle of an opening, and no late answer brings it back. What a thread may still commit is a
topic's start (`fix_start`), which is the same whoever fixes it and needs no ownership.
"""

import logging
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from kgs_core.config import Settings, TableSpec, resolve_tables
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError, UnsafeError
from kgs_core.ingest.opening.opening_threads import LATE, Opening, OpeningThreads
from kgs_core.ingest.opening.retry_times import RetryTimes
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.answers import other_topic
from kgs_core.ingest.round.stops import StopCause
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.rule.batch import TablePositions
from kgs_core.model import TopicPartition

PartitionsOf = Callable[[str, int], frozenset[int]]
"""Topic and how many partitions it has -> those that are ours."""
NO_RULE = "no rule under topics matches it: add one; if you took it out, the controller soon takes the partitions away"
NO_TOPIC = "Kafka has no such topic or partition"
MISSING_AGAIN_S = 2.0
UNKNOWN_AGAIN_S = 10.0
NOT_YET = "not read yet: Kafka or the lake does not answer"
PATIENCE_S = 1.0
"""How long a round waits for tables: one that is fast is read in the same round, one that is slow holds up no other."""
FIRST_PATIENCE_S = 5.0
SOON_S = 0.5
_log = logging.getLogger(__name__)


class OwnedTopics:
    """Which partitions are ours comes from outside; a topic that fails is left out, loudly, and holds up no other.

    Attributes:
        states: what is open.
        problems: topic -> why it could not be opened, or why its positions could not be read.
        retries: when topics are tried again, sooner than everything is looked after.
        threads: those that ask the tables.
    """

    def __init__(self, settings: Settings, admin: KafkaAdmin, opener: TopicOpener) -> None:
        self.states: dict[str, TopicState] = {}
        self.problems: dict[str, str] = {}
        self.retries = RetryTimes()
        self.threads = OpeningThreads(settings.consumer.wait_time_s)
        self._settings = settings
        self._admin = admin
        self._opener = opener
        self._counts: dict[str, int] = {}
        self._missing: frozenset[str] = frozenset()
        self._must_open: set[str] = set()

    def refresh_all(self, partitions_of: PartitionsOf, *, first: bool) -> None:
        """Look for all topics and partitions that came, went or changed; ask the tables where stopped ones stand.

        Raises:
            PortError, ConfigError: at the first time, of a topic that has failed within `FIRST_PATIENCE_S`, in passing
                only where none is open; of the others `take_in`. Later it is left out, and what is open is read on.
        """
        if first:
            specs = resolve_tables(self._settings, self._admin.list_topics())
            described = {t: f for t, f in self._admin.describe(specs).items() if partitions_of(t, f.partitions)}
            self._must_open = set(described)
            self._begin_all(described, partitions_of)
            self.take_in(partitions_of, FIRST_PATIENCE_S)
            waits = [self.problems[topic] for topic in sorted(self._must_open & self.problems.keys())]
            if waits and not self.states:  # those that are open do not wait for the others' registry or store
                raise TransientError(waits[0])
            return
        try:
            ruled = {topic for topic in self._admin.list_topics() if self._settings.rule_of(topic) is not None}
            described = self._describe(ruled | self.states.keys())
        except PortError as e:
            _log.warning("topics could not be checked, retrying: %s", e)
            return
        ours = {t: f for t, f in described.items() if t in self.states or partitions_of(t, f.partitions)}
        self._begin_all(ours, partitions_of)
        self.take_in(partitions_of, PATIENCE_S)

    def refresh(self, topics: Collection[str], partitions_of: PartitionsOf) -> float | None:
        """As `refresh_all`, of these topics only, and none holds up another; each is opened, owned or not.

        Returns:
            After how many seconds another look is worth it; None when it would say the same. Trouble in opening has
            times of its own, see `retry`.
        """
        try:
            described = self._describe(topics)
        except TransientError as e:  # what is open is read on: its leaders may answer
            _log.warning("topics could not be checked, retrying: %s", e)
            return e.retry_after_s
        self._begin_all(described, partitions_of)
        self.take_in(partitions_of, PATIENCE_S)
        return MISSING_AGAIN_S if self._misses_more(topics, described, partitions_of) else None

    def retry(self, partitions_of: PartitionsOf) -> None:
        """Try the topics again whose time has come; their openings are not waited for."""
        due, began = self.retries.due(), time.monotonic()
        for topic in due:
            self.retries.begun(topic)
        try:
            described = self._describe(due) if due else {}
        except TransientError as e:
            for topic in due:  # what waits long for an answer is not asked for all the time
                self.retries.put_off(topic, time.monotonic() - began + e.retry_after_s)
        else:
            self._begin_all(described, partitions_of)

    def take_in(self, partitions_of: PartitionsOf, wait_s: float = 0.0) -> None:
        """Take in what the threads have found, between two rounds; not in each, or no batch of what is read would fill.

        `wait_s`: how long those are waited for that have just begun; more than 0: in any case.

        Raises:
            PortError, ConfigError: of a topic of the first `refresh_all`.
        """
        for opening in self.threads.taken(wait_s, is_reading=bool(self.positions())):
            state = self.states.get(opening.topic)
            if not opening.is_over:
                self._leave_behind(opening)
                continue
            if state is not None and state.table is opening.table:
                state.is_at_work = False
            if opening.positions is None:
                self._note_failure(opening.topic, opening.error)
            else:
                self._take_in(opening, opening.positions, partitions_of)

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

    def own(self, topic: str, partitions: frozenset[int], partitions_of: PartitionsOf) -> bool:
        """Own exactly these of a topic's, at the table's positions, as soon as it says them: `take_in`.

        Returns:
            False where the topic must be refreshed for it.
        """
        state, count = self.states.get(topic), self._counts.get(topic, 0)
        if state is None or topic in self.problems or max(partitions, default=0) >= count:
            return False
        if partitions != state.progress.owned:
            self._begin(state.table.spec, TopicDescription(state.table.ids.topic_id, count), partitions_of)
        return True

    def let_go(self, kept: Collection[TopicPartition], pending: Collection[TopicPartition]) -> None:
        """Forget everything about other partitions, positions first of all; a topic without any is closed."""
        topics = {tp.topic for tp in (*kept, *pending)}
        for topic, state in list(self.states.items()):
            state.give_up(frozenset(p for p in state.progress.owned if TopicPartition(topic, p) not in kept))
            if topic not in topics:
                del self.states[topic]
        self.threads.let_go(kept, topics)
        self.problems = {topic: why for topic, why in self.problems.items() if topic in topics}
        self.retries.keep(topics)

    def reasons(self, owned: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Why those of `owned` that stand still do so."""
        now = time.monotonic()
        return {tp: why for tp in owned if (why := self._why_unread(tp, now)) is not None}

    def _why_unread(self, tp: TopicPartition, now: float) -> str | None:
        state, opening = self.states.get(tp.topic), self.threads.of(tp.topic)
        if state is not None and tp.partition in state.progress.owned:
            stop = state.progress.reported_stops.get(tp.partition)
            return stop.reason if stop is not None else None
        if (why := self.problem_of(tp)) is not None:
            return why
        if opening is not None:
            return opening.lasts(now)
        return None if state is not None and state.is_at_work else NOT_YET

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

    def _begin_all(self, described: Mapping[str, TopicDescription], partitions_of: PartitionsOf) -> None:
        try:
            specs = resolve_tables(self._settings, [*self.states, *described])
        except ConfigError:  # who comes first has the table; of the others each is left out with its reason
            specs = {}
        for topic, found in sorted(described.items()):
            try:
                self._begin(specs.get(topic) or self._spec(topic), found, partitions_of)
            except ConfigError as e:
                self._leave_out(topic, e)

    def _spec(self, topic: str) -> TableSpec:
        spec = resolve_tables(self._settings, [*self.states, *self.threads.topics, topic]).get(topic)
        if spec is None:
            raise ConfigError([f"topic {topic}: {NO_RULE}"])
        return spec

    def _begin(self, spec: TableSpec, found: TopicDescription, partitions_of: PartitionsOf) -> None:
        """Have a thread ask the topic's table what is not known of it yet, if anything."""
        topic = spec.topic
        state, owned, opening = self.states.get(topic), partitions_of(topic, found.partitions), self.threads.of(topic)
        if opening is not None and opening.found.topic_id == found.topic_id:
            opening.found = found  # what that means is seen when it has come back
        if opening is not None or not self.threads.may_begin(topic):
            return
        if state is not None and state.is_at_work:  # its commit is late
            self.retries.put_off(topic, SOON_S)
            return
        self.retries.begun(topic)
        if state is None or state.table.ids.topic_id != found.topic_id:
            # One that was made again is refused by this, unless somebody has accepted it since.
            open_ = partial(self._opener.open, spec, found.topic_id, found.partitions)
            self.threads.begin(Opening(topic, found, owned, open_))
        elif owned != state.progress.owned or state.progress.stops:
            state.is_at_work = True
            self.threads.begin(Opening(topic, found, owned, table=state.table))
        else:
            self._is_well(state, found)

    def _take_in(self, opening: Opening, positions: TablePositions, partitions_of: PartitionsOf) -> None:
        state = self.states.get(opening.topic)
        if state is None or state.table is not opening.table:
            state = self.states[opening.topic] = TopicState(opening.opened)
        kept = opening.partitions - opening.let_go
        state.progress = state.progress.owning(kept, positions)
        self._opener.note_positions(state.table, positions.next_offset)
        self._is_well(state, opening.found)
        if partitions_of(opening.topic, opening.found.partitions) != kept:  # given meanwhile
            self._begin(state.table.spec, opening.found, partitions_of)

    def _is_well(self, state: TopicState, found: TopicDescription) -> None:
        topic = state.topic
        if topic in self.problems:
            state.progress = replace(state.progress.looking_at_once(time.monotonic()), is_missing=False)
        self._counts[topic] = found.partitions
        self.problems.pop(topic, None)
        self.retries.over(topic)
        self._must_open.discard(topic)

    def _note_failure(self, topic: str, error: BaseException | None) -> None:
        if isinstance(error, ConfigError | PortError):
            trouble: Exception = error
        else:
            trouble = TransientError(f"topic {topic}: {type(error).__name__}: {error}", UNKNOWN_AGAIN_S)
        self._leave_out(topic, trouble)
        if isinstance(trouble, TransientError):
            self.retries.failed(topic, trouble.retry_after_s)
        elif topic in self._must_open:
            self._must_open.discard(topic)
            raise trouble

    def _leave_behind(self, opening: Opening) -> None:
        """Nothing has come back for long, and perhaps nothing will: another try must not wait for that."""
        topic = opening.topic
        state = self.states.get(topic)
        if state is not None and state.table is opening.table:
            del self.states[topic]  # its handle is in use: the topic is opened anew, beside it
        self._leave_out(topic, TransientError(f"topic {topic}: {LATE}"))
        self.retries.failed(topic, SOON_S)

    def _note_missing(self, topic: str) -> None:
        """Kafka says that there is no such topic."""
        state = self.states.get(topic)
        if state is None:
            self._leave_out(topic, UnsafeError(f"topic {topic}: {NO_TOPIC}"))
            return
        if state.is_at_work:
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
        if state is not None and not state.is_at_work and not isinstance(error, TransientError):
            cause = StopCause.TABLE if isinstance(error, UnsafeError) else StopCause.DENIED
            state.stop(dict.fromkeys(state.progress.owned, str(error)), cause)
