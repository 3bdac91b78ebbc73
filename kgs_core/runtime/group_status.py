"""The group from outside: what its topics, the monitor and the lake say of it. Reads only."""

import time
from collections.abc import Callable, Sequence

from kgs_core.config import Settings
from kgs_core.errors import PortError
from kgs_core.group.protocol import Heartbeat, Message, Received, Report
from kgs_core.group.topics.connections import GroupConnections
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopics
from kgs_core.group.view.group_view import GroupView
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.derived.upkeep import newest_rows_lags
from kgs_core.lake.rule.completeness import Completeness
from kgs_core.lake.topics.complete import CompleteView
from kgs_core.lake.topics.stats import LakeSnapshot, LakeView
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.clock import age_s
from kgs_core.monitor.kafka.load import measured_load
from kgs_core.monitor.kafka.topic import load_history
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.planning.rebalance_budget import moved_within_an_hour
from kgs_core.reporting.consumer_rows import ExternalFacts
from kgs_core.reporting.status import GroupStatus, group_status, silent_after_s
from kgs_core.system.closing import Closing


class GroupWatch(Closing):
    """Looks at the group again and again; a context manager that ends its connections. For one thread.

    Attributes:
        snapshot: the lake as the last look with it has found it.
        view: what the topics have said up to the last look.
    """

    def __init__(
        self,
        settings: Settings,
        observe: Callable[[Sequence[Received[Message]]], None] = lambda _: None,
        *,
        reads_records: bool = True,
    ) -> None:
        """Read all that the group's topics hold; `observe` is given all messages in their order.

        `reads_records`: also say how far tables are complete, which needs the right to read the topics.

        Raises:
            PermanentError: the topics do not exist yet, or may not be read.
            TransientError: Kafka does not answer.
        """
        self._settings = settings
        self._admin = admin_of(settings)
        self._topic_reader = KafkaGroupTopicReader(GroupTopics(settings, self._admin))
        self._lake = LakeView(settings)
        has_hours = any(rule.complete_hours is not None for rule in settings.topics)
        self._complete = CompleteView(settings, asked_for=True) if has_hours and reads_records else None
        self._observe = observe
        self.snapshot: LakeSnapshot | None = None
        self.view = GroupView()
        self._take(self._topic_reader.read_to_end())

    def look(self, *, with_lake: bool = True) -> GroupStatus:
        """The group as it is now; `with_lake`: also how much the lake has not read yet.

        Raises:
            PortError: Kafka does not answer, or refuses.
        """
        facts = self._facts(with_lake=with_lake)
        while received := self._topic_reader.poll(0.0):  # last, so that nobody looks silent because the lake was slow
            self._take(received)
        return group_status(self._settings, self.view, facts, time.monotonic(), round(time.time() * 1000))

    def close(self) -> None:
        """End the connections."""
        self._topic_reader.close()
        if self._complete is not None:
            self._complete.close()

    def _take(self, received: Sequence[Received[Message]]) -> None:
        self._observe(received)
        # The view takes the newest report for one that has come just now; after an outage that may be days ago
        newest_ms = max((r.timestamp_ms for r in received if isinstance(r.message, Report | Heartbeat)), default=None)
        age_s = 0.0 if newest_ms is None else max(0.0, time.time() - newest_ms / 1000)
        self.view = self.view.take_all(received, time.monotonic() - age_s)

    def _facts(self, *, with_lake: bool) -> ExternalFacts:
        problems: list[str] = []
        lags: dict[TopicPartition, int | None] = {}
        complete: tuple[Completeness, ...] = ()
        if with_lake:
            asked_ms = int(time.time() * 1000)
            snapshot = self.snapshot = self._lake.snapshot()
            complete = () if self._complete is None else self._complete.judged(snapshot, asked_ms)
            problems += snapshot.problems
            lags = {TopicPartition(t.topic, p): t.lag_of(p) for t in snapshot.tables for p in t.ends}
        newest_rows = newest_rows_lags(self._settings, self._lake.specs, problems) if with_lake else {}
        return ExternalFacts(
            load=self._load(problems),
            lags=lags,
            problems=tuple(problems),
            complete=complete,
            newest_rows=newest_rows,
        )

    def _load(self, problems: list[str]) -> Load | None:
        try:
            history = load_history(self._settings, self._admin, 1)
        except PortError as e:  # whoever may read the group's topics need not have the right to read this one
            problems.append(str(e))
            return None
        return measured_load(self._settings, history[-1], age_s=age_s(history[-1])) if history else None


def hears_controller(settings: Settings) -> bool:
    """Whether measurements have been published of late, which a controller does all the time.

    Raises:
        PortError: Kafka does not answer, or refuses: an operator need not have the right to read them.
    """
    measurements = load_history(settings, admin_of(settings), 1)
    return bool(measurements) and age_s(measurements[-1]) <= silent_after_s(settings)


def load_group(settings: Settings) -> tuple[Group, float, GroupView]:
    """The consumers by the group's newest Target, the Rscore of what has moved within the last hour, and the view.

    Nobody, where its controller has not written a Target yet.

    Raises:
        PortError: Kafka does not answer, or refuses.
    """
    with GroupConnections(settings) as topics:
        reader = topics.reader()
        view = GroupView().take_all(reader.read_to_end() if reader is not None else (), time.monotonic())
    if view.target is None:
        return Group(), 0.0, view
    target = view.target.message
    moved_rscore = moved_within_an_hour(target.history, round(time.time() * 1000))
    spares, quarantined = frozenset(target.spares), frozenset(target.quarantined)
    group = Group(target.assignment, spares, quarantined, standing=spares, classes=view.classes(), zones=view.zones())
    return group, moved_rscore, view


def has_topics(settings: Settings) -> bool:
    """Whether the group's topics exist, as they do once a controller has begun.

    Raises:
        PortError: Kafka does not answer, or refuses.
    """
    with GroupConnections(settings) as topics:
        return topics.reader() is not None
