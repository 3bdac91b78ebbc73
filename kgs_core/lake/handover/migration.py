"""A topic that has moved to another cluster: its table goes on under the new topic id, at offsets that a person says.

The old life's positions are closed in the commit that begins the new one; its history stays proven by its own offsets.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, TransientError, UnsafeError
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA
from kgs_core.lake.rule.positions import CLOSED, AppIds
from kgs_core.lake.rule.table_owner import STARTS, close_life, is_over, open_lives
from kgs_core.lake.topics.discovery import find_topic
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.shared_table import refuse_other_groups
from kgs_core.lake.topics.side_tables import is_there, side_tables_of
from kgs_core.model import OffsetRange, TopicId, TopicPartition
from kgs_core.ports import CommitOutcome
from kgs_core.system.failpoints import failpoint

TRIES = 20


@dataclass(frozen=True, slots=True)
class TopicMigration:
    """Place where a table goes on after a topic has moved.

    Attributes:
        old_id: the topic id that the table was filled from.
        ended: partition -> where reading under it ended.
        offsets: partition -> where reading under the new one begins.
        logs: partition -> the offsets that its log has.
        given: partitions whose offset a person has said.
    """

    spec: TableSpec
    old_id: TopicId
    new_id: TopicId
    ended: Mapping[int, int]
    offsets: Mapping[int, int]
    logs: Mapping[int, OffsetRange]
    given: frozenset[int]


class Migration:
    """Takes a topic of another cluster for the one that its table was filled from."""

    def __init__(self, settings: Settings) -> None:
        """`settings` are those of the new cluster."""
        self._settings = settings
        self._admin = admin_of(settings)
        self._lake = open_lake(settings.lake)

    def plan(
        self, topic: str, given: Mapping[int, int], *, keep: bool = False, old_id: str | None = None
    ) -> TopicMigration:
        """What would be recorded.

        Args:
            given: partition -> offset in the new cluster.
            keep: for the others, the table's position: the offsets are the same there as they were.
            old_id: which earlier topic id; needed where the table knows several.

        Raises:
            ConfigError: no such topic or partition, or an offset is missing.
            UnsafeError: there is nothing to go on from, it was done before, or its history has ended here; an offset is
                not in the log; or a table beside the rows' is ahead of it.
            PortError: Kafka or the store did not answer.
        """
        group = self._settings.group
        spec, topic_id, partitions = find_topic(self._settings, self._admin, topic)
        refuse_other_groups(self._lake, spec.table, group)
        stored = self._lake.all_versions(spec.table)
        lives = open_lives(stored, group, topic)
        if topic_id in lives:
            raise UnsafeError(f"topic {topic}: table {spec.table} is filled from this topic, id {topic_id}, already")
        if is_over(stored, AppIds(group, topic, topic_id)):
            raise UnsafeError(
                f"topic {topic}: table {spec.table} was moved away from this topic, id {topic_id}, before: recreate "
                "the topic in this cluster, it gets another id then, or read it into another table"
            )
        life = _earlier_life(spec, lives, old_id)
        tps = [TopicPartition(topic, p) for p in range(partitions)]
        first, end = (self._admin.offsets(tps, which) for which in ("earliest", "latest"))
        logs = {tp.partition: OffsetRange(first[tp], end[tp]) for tp in tps}
        offsets = _first_offsets(topic, logs, given, lives[life], keep=keep)
        move = TopicMigration(spec, life, topic_id, lives[life], offsets, logs, frozenset(given))
        for table in self._beside(spec):
            self._marks(table, move)
        return move

    def carry_out(self, move: TopicMigration) -> None:
        """Close the old life and begin the new one, first beside the rows' table, then in that.

        Raises:
            UnsafeError: somebody reads on under the old id: its positions are no longer those of `move`; or a table
                beside the rows' has come to be ahead of it.
            TransientError: the store did not answer, or others commit all the time.
        """
        self._lake.table(move.spec.dead_letters_table, DEAD_LETTER_SCHEMA).create()
        for _ in range(TRIES):
            if self._try_to_move(move):
                return
        raise TransientError(f"table {move.spec.table}: partitions begin all the time: run it again")

    def _try_to_move(self, move: TopicMigration) -> bool:
        """Whether it is moved; else a partition or a route has begun meanwhile, of whichever topic: look again."""
        spec, group = move.spec, self._settings.group
        old, new = AppIds(group, spec.topic, move.old_id), AppIds(group, spec.topic, move.new_id)
        for table in (spec.dead_letters_table, *side_tables_of(self._lake, spec, group), spec.table):
            self._lake.forget_intents(table)
        stored = self._lake.all_versions(spec.table)
        if open_lives(stored, group, spec.topic).get(move.old_id) != move.ended:
            raise _read_on(spec.table)
        for table in self._beside(spec):  # before the rows', as in `adoption`
            found, marks = self._marks(table, move)
            closing, versions = close_life(found, old, marks)
            if versions and self._lake.open(table).commit(closing, versions, ()) is CommitOutcome.REFUSED:
                raise _read_on(table)
            failpoint("adopted")
        expected, versions = close_life(stored, old, dict(move.ended))
        # No partition begins under the old id meanwhile: its positions would stay open. Nor does a route, with a side
        # table that was not looked at
        expected[STARTS], versions[STARTS] = stored.get(STARTS), (stored.get(STARTS) or 0) + 1
        expected |= {old.route(p): stored.get(old.route(p)) for p in move.ended}
        for p, offset in move.offsets.items():
            expected |= {new.position(p): None, new.start(p): None}
            versions |= {new.position(p): offset, new.start(p): offset}
        return self._lake.open(spec.table).commit(expected, versions, ()) is CommitOutcome.COMMITTED

    def _beside(self, spec: TableSpec) -> list[str]:
        """Tables beside the rows' that are there."""
        named = (spec.dead_letters_table, *side_tables_of(self._lake, spec, self._settings.group))
        return [table for table in named if is_there(self._lake, table)]

    def _marks(self, table: str, move: TopicMigration) -> tuple[dict[str, int], dict[int, int | None]]:
        """All versions in the log of a table beside the rows', and partition -> its mark in it.

        Raises:
            UnsafeError: it is ahead, as a consumer leaves it that is killed between two tables: what it has more would
                be read again under the new id, by which nobody would know it.
        """
        stored = self._lake.all_versions(table)
        ids = AppIds(self._settings.group, move.spec.topic, move.old_id)
        marks = {p: stored.get(ids.position(p)) for p in move.ended}
        for p, mark in marks.items():
            if mark is not None and mark != CLOSED and mark > move.ended[p] and p not in move.given:
                tp = f"{move.spec.topic}:{p}"
                raise UnsafeError(
                    f"table {table}: has {tp} up to {mark}, and table {move.spec.table} only to {move.ended[p]}, since "
                    "a consumer was killed: start consumers of the old cluster, stop them with kgs stop --wait, and "
                    f"repeat this; if that cluster is gone, give --offset {tp}=OFFSET, and these are there twice"
                )
        return stored, marks


def _read_on(table: str) -> UnsafeError:
    return UnsafeError(f"table {table}: a consumer still commits to it under the old topic id: stop the consumers")


def _earlier_life(spec: TableSpec, lives: Mapping[TopicId, object], old_id: str | None) -> TopicId:
    if old_id is not None and TopicId(old_id) in lives:
        return TopicId(old_id)
    if not lives:
        raise UnsafeError(f"table {spec.table}: was never filled from another topic {spec.topic}: start a consumer")
    if old_id is not None or len(lives) > 1:
        named = ", ".join(sorted(lives))
        raise UnsafeError(f"table {spec.table}: was filled from topic ids {named}: say which: --from-topic-id ID")
    return next(iter(lives))


def _first_offsets(
    topic: str, logs: Mapping[int, OffsetRange], given: Mapping[int, int], ended: Mapping[int, int], *, keep: bool
) -> dict[int, int]:
    """Where each partition of the new topic begins: as given, as kept; one that is new, at its first offset."""
    if unknown := sorted(set(given) - set(logs)):
        raise ConfigError(
            [f"--offset {topic}:{p}: topic {topic} has the partitions 0 to {len(logs) - 1}" for p in unknown]
        )
    if missing := [] if keep else sorted((set(ended) & set(logs)) - set(given)):
        raise ConfigError([f"topic {topic}:{p}: give --keep-offsets, or --offset {topic}:{p}=OFFSET" for p in missing])
    offsets = {p: log.start for p, log in logs.items()} | {p: o for p, o in ended.items() if p in logs} | dict(given)
    for p, offset in sorted(offsets.items()):
        log = logs[p]
        if not log.start <= offset <= log.end:
            raise UnsafeError(
                f"topic {topic}:{p}: offset {offset} is not in its log, which has {log.start} to {log.end - 1}: what "
                f"lies between would be skipped or read twice: to continue elsewhere, --offset {topic}:{p}=OFFSET"
            )
    return offsets
