"""Audits the lake: every table against its own log and, where that is still there, against Kafka's."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from kgs_core.config import Settings, TableSpec
from kgs_core.config.tables import resolve_tables
from kgs_core.errors import PortError, TransientError
from kgs_core.kafka.admin import KafkaAdmin, admin_of
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.audit.audit_kafka_log import load_log
from kgs_core.lake.audit.audit_snapshot import TableSnapshot, load_snapshots
from kgs_core.lake.derived.proof import prove
from kgs_core.lake.files.places import PartitionKey
from kgs_core.lake.rule import (
    NO_OFFSETS,
    LakeAudit,
    LogPart,
    PartitionAudit,
    StoredPositions,
    TableAudit,
    check_partition,
)
from kgs_core.lake.rule.first_start import offsets_read, second_start
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import UnreadTable, find_tables
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.side_tables import side_tables_of
from kgs_core.lake.topics.topic_table import has_started
from kgs_core.model import OffsetRange, TopicPartition, grouped
from kgs_core.ports import Lake

AWAY_AFTER = 2
"""Tables, or logs, in a row that could not be read for now: then it is the store, or Kafka, that does not answer."""
NOT_READ = LogPart(absent="log not read")
Progress = Callable[[str, int, int], None]
"""Is told a topic, offsets of its log read, and offsets to read."""


def audit_lake(
    settings: Settings,
    *,
    with_log: bool = True,
    topics: Collection[str] | None = None,
    progress: Progress | None = None,
) -> LakeAudit:
    """Compare every table with what its positions promise; consumers may go on committing meanwhile.

    A topic is audited with the tables of its rows and its dead letters, under every topic id that they know of. One
    table after the other, so that the memory needed (8 bytes per row and 8 per record) is that of the largest.

    One table or log that cannot be read is a `problem` of its audit.

    Args:
        with_log: whether Kafka is asked. Without, it need not be there, and a hole in the offsets (a transaction's
            marker, say) cannot be told from a loss: it counts as lost.
        topics: only these; None: all that a rule fits.

    Raises:
        ConfigError: see `find_tables`.
        PortError: Kafka or the lake did not answer. One table or log that cannot be read is a `problem` of its audit.
    """
    lake = open_lake(settings.lake)
    admin = admin_of(settings) if with_log else None
    unread: list[UnreadTable] = []
    specs = find_tables(settings, lake, admin.list_topics() if admin else (), topics, unread)
    found: dict[str, TableAudit] = {}
    lake_unread, log_unread = 0, 0
    for same in grouped((spec.table, spec) for spec in specs).values():
        try:
            snapshots = _snapshots(settings, lake, same)
        except PortError as e:
            lake_unread = _one_more(lake_unread, e)
            found |= {spec.topic: _not_audited(spec, e) for spec in same}
            continue
        lake_unread = 0
        for spec in same:
            try:
                found[spec.topic] = _audit(settings, (lake, admin), spec, snapshots.pop(spec.topic), progress)
            except PortError as e:
                log_unread = _one_more(log_unread, e)
                found[spec.topic] = _not_audited(spec, e)
            else:
                log_unread = 0
    left = [TableAudit("", each.table, each.rule.rows, None, problem=str(each.error)) for each in unread]
    tables = (*(found[spec.topic] for spec in specs), *(left if topics is None else ()))
    derived = {spec.latest_table: spec for spec in specs if spec.latest_table is not None}
    return LakeAudit(tables, tuple(each for spec in derived.values() for each in prove(settings, spec)))


def _one_more(unread: int, error: PortError) -> int:
    """A table that is broken, and a topic that is refused, stop no other one; a store or a Kafka that is away does."""
    if not isinstance(error, TransientError):
        return 0  # it was an answer
    if unread + 1 >= AWAY_AFTER:
        raise error
    return unread + 1


def _not_audited(spec: TableSpec, problem: object, notes: tuple[str, ...] = ()) -> TableAudit:
    return TableAudit(spec.topic, spec.table, spec.rule.rows, None, notes=notes, problem=str(problem))


def _snapshots(settings: Settings, lake: Lake, specs: Sequence[TableSpec]) -> dict[str, TableSnapshot]:
    """Of the topics of one table, which is read once."""

    def belongs(topic: str) -> bool:
        """Where its rule names another table now, its rows here are foreign, unless this is a side table of it."""
        spec = resolve_tables(settings, [topic]).get(topic)
        if spec is None or spec.table == specs[0].table:
            return True
        return specs[0].table in side_tables_of(lake, spec, settings.group)

    return load_snapshots(lake, settings.group, specs, belongs)


def _audit(
    settings: Settings,
    stores: tuple[Lake, KafkaAdmin | None],
    spec: TableSpec,
    snapshot: TableSnapshot,
    progress: Progress | None,
) -> TableAudit:
    (lake, admin), notes = stores, _notes_on(snapshot, settings.group)
    if admin is None:
        log: Mapping[PartitionKey, LogPart] = dict.fromkeys(snapshot.positions, NOT_READ)
    else:
        log, topic = _read_log(settings, admin, spec.topic, snapshot, progress)
        notes += _notes_on_topic(spec.topic, topic, snapshot)
        if topic is not None and (problem := _missing(settings, lake, spec, topic, snapshot)):
            return _not_audited(spec, problem, notes)
        log = _as_read_by_now(settings, lake, spec, snapshot, log)
    partitions = tuple(
        check_partition(
            snapshot.positions.get(key) or StoredPositions(key.topic_id, key.partition, None, None),
            snapshot.rows.get(key, NO_OFFSETS),
            snapshot.dead_letters.get(key, NO_OFFSETS),
            log.get(key, LogPart()),
            spec.rule.rows,
            snapshot.sides.get(key, ()),
        )
        for key in sorted({*snapshot.positions, *snapshot.rows, *snapshot.dead_letters, *snapshot.sides, *log})
    )
    notes += _notes_on_ended(partitions)
    return TableAudit(spec.topic, spec.table, spec.rule.rows, snapshot.version, partitions, notes)


def _missing(
    settings: Settings, lake: Lake, spec: TableSpec, topic: TopicDescription, snapshot: TableSnapshot
) -> str | None:
    """Why a table without positions of the topic is not one that nobody has filled yet; None where it is."""
    has_begun = any(key.topic_id == topic.topic_id for key in snapshot.positions)
    if has_begun or snapshot.handed_over or snapshot.other_groups:
        return None
    with closing(GroupOffsets(reading_client(settings), settings.group)) as group:
        committed = group.committed([TopicPartition(spec.topic, p) for p in range(topic.partitions)])
    read = offsets_read(committed, topic.topic_id, spec.table, spec.rule.start)
    if not read or has_started(lake, spec.table, AppIds(settings.group, spec.topic, topic.topic_id)):
        return None
    return second_start(spec.table, settings.group, read)


def _as_read_by_now(
    settings: Settings, lake: Lake, spec: TableSpec, snapshot: TableSnapshot, log: Mapping[PartitionKey, LogPart]
) -> Mapping[PartitionKey, LogPart]:
    """Without starts of logs that are behind the position by now: what was deleted since the snapshot had been read."""

    def position(key: PartitionKey) -> int:
        return (key in snapshot.positions and snapshot.positions[key].position) or 0

    behind = {key: part.start for key, part in log.items() if part.start is not None and part.start > position(key)}
    now = lake.all_versions(spec.table) if behind else {}
    ids = {key: AppIds(settings.group, spec.topic, key.topic_id).position(key.partition) for key in behind}
    read = {key for key, start in behind.items() if now.get(ids[key], 0) >= start}
    return {key: replace(part, start=None) if key in read else part for key, part in log.items()}


def _read_log(
    settings: Settings, admin: KafkaAdmin, topic: str, snapshot: TableSnapshot, progress: Progress | None
) -> tuple[dict[PartitionKey, LogPart], TopicDescription | None]:
    """The log of the topic's present id, which is None where there is no topic of this name."""
    known = admin.describe([topic]).get(topic)
    if known is None:
        return {}, None
    of_known = {key.partition: stored for key, stored in snapshot.positions.items() if key.topic_id == known.topic_id}
    wanted = {
        p: OffsetRange(stored.start, stored.position)
        for p, stored in of_known.items()
        if p < known.partitions and stored.start is not None and stored.position is not None
    }
    # A partition that appeared after the topic's first start begins at 0
    wanted |= {p: OffsetRange(0, 0) for p in range(known.partitions) if of_known and p not in of_known}
    found = load_log(settings, admin, topic, wanted, lambda done, total: progress and progress(topic, done, total))
    if admin.topic_ids([topic])[topic] != known.topic_id:  # deleted while it was read: whose records were these?
        return {}, None
    return {PartitionKey(known.topic_id, partition): part for partition, part in found.items()}, known


def _notes_on(snapshot: TableSnapshot, group: str) -> tuple[str, ...]:
    if snapshot.handed_over:
        to = f"to group {', '.join(snapshot.other_groups)} " if snapshot.other_groups else ""
        return (f"handed over {to}by kgs adopt: audit it with that group's configuration",)
    absent = ("no table yet",) if snapshot.version is None and not snapshot.dead_letters else ()
    missing = ("the table is not there, but its dead letters are",) if snapshot.version is None and not absent else ()
    names, topics = ", ".join(snapshot.other_groups), snapshot.other_topics
    hint = f"fills this table: if that is the earlier name of group {group}: kgs adopt --from-group {names}"
    others = (f"group {names} {'writes this table too' if snapshot.positions else hint}",) if names else ()
    beside = (f"the table also has rows of {', '.join(topics)}: not audited here",) if topics else ()
    sides = sorted({side.table for each in snapshot.sides.values() for side in each})
    together = (f"with the rows of {', '.join(sides)}",) if sides else ()
    return (*absent, *missing, *others, *beside, *together)


def _notes_on_ended(partitions: Sequence[PartitionAudit]) -> tuple[str, ...]:
    ended, erased = sum(p.ended for p in partitions), sum(p.erased for p in partitions)
    by = [f"{count:,} {what}" for count, what in ((ended, "by keep"), (erased, "by kgs erase")) if count]
    return (f"records that have ended: {', '.join(by)}",) if by else ()


def _notes_on_topic(topic: str, found: TopicDescription | None, snapshot: TableSnapshot) -> tuple[str, ...]:
    ids = {key.topic_id for key in snapshot.positions}
    if found is None:
        return (f"topic {topic} is gone from Kafka: compared with the table's own log only",) if ids else ()
    earlier = sorted(ids - {found.topic_id})
    return (f"rows of earlier topics of this name: ids {', '.join(earlier)}",) if earlier else ()
