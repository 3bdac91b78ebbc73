"""Dead letters parsed again by today's rule, their rows into the table: each once, beside consumers.

Killed anywhere, run twice or by two at once, nothing is doubled (`redrive_base` says why). Killed between file and
commit, a file is left that belongs to no version; upkeep takes it. The dead letters stay where they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from kgs_core.config import Settings, TableSpec
from kgs_core.errors import ConfigError, KgsError, PermanentError, PortError, TransientError, one_line
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.formats.parsed import NO_COLUMNS
from kgs_core.ingest.opening.topic_opener import columns_of
from kgs_core.ingest.replay.letter_records import GONE, incomplete, records_in, reread
from kgs_core.ingest.replay.redrive_result import RedriveResult
from kgs_core.ingest.worker.batch_files import write_files
from kgs_core.ingest.worker.dataframe_rows import SparkTransform
from kgs_core.ingest.worker.masks import masks_of
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.process_batch import TransformError, transform_arrow
from kgs_core.ingest.worker.sorted_records import rows_of
from kgs_core.ingest.worker.topic_job import MoreColumnsError, TopicPlan
from kgs_core.kafka.admin import admin_of
from kgs_core.lake.files.layout import Partitioned, given_schema, layout_of, table_schema
from kgs_core.lake.files.row_schema import DEAD_LETTER_SCHEMA, IDENTITY, parsed_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.letters.letter_filter import EVERY_LETTER, LetterFilter
from kgs_core.lake.letters.redrive_base import RedriveBase, look, pinned_rows
from kgs_core.lake.rule.error_codes import code_of, with_code
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import UnreadTable, find_tables, refuse_unknown
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.routing import routed
from kgs_core.lake.topics.shared_table import topics_by_id
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicId
from kgs_core.ports import CommitOutcome, Lake, PinnedTable
from kgs_core.system.closing import Closing
from kgs_core.system.failpoints import failpoint

TRIES = 20
MOST_LETTERS = 50_000
MOST_BYTES = 64_000_000
T = TypeVar("T")
Transform = Callable[[TopicPlan, pa.Table], pa.Table]
"""Rows of one topic before the rule's transform -> rows in the table's columns."""


class Redrive:
    """Redrive of one table's dead letters. Changes no dead letter and nothing in Kafka.

    Kafka need not be there, unless the rule masks fields: then its records are read once more.
    """

    def __init__(self, settings: Settings, table: str) -> None:
        """The table is named by its path in the lake.

        Raises:
            ConfigError: no topic fills such a table.
            PortError: the lake or the schema registry did not answer.
        """
        self._settings = settings
        self._lake = open_lake(settings.lake)
        unread: list[UnreadTable] = []
        specs = find_tables(settings, self._lake, (), None, unread)
        # A topic of this table may be known by its log alone
        refuse_unknown([each for each in unread if each.table == table or table not in {s.table for s in specs}])
        self._specs = _specs_of(settings, specs, table)
        self._topics: dict[str, TopicRedrive] = {}

    def run(self, chosen: LetterFilter = EVERY_LETTER, *, dry_run: bool = False) -> RedriveResult:
        """Redrive the chosen letters, as of now; a commit for each 50,000 of a topic at most.

        A part whose rows have more partition values than a batch may have is halved. A topic that fails stops no
        other one of its table, nor an earlier or later topic of its name; its error is raised at the end.

        Raises:
            PermanentError: the transform raised or broke its promise; what was committed before stays.
            UnsafeError: the table has other columns, is not there, or is another group's.
            ConfigError: the schema registry has no schema for a topic, or one that no columns can be made of.
            TransientError: the lake, the schema registry or Kafka did not answer; run it again.
        """
        spec = self._specs[0]
        result = RedriveResult(spec.table)
        letters = _store_asked(lambda: self._lake.pin(spec.dead_letters_table), spec.dead_letters_table)
        if letters is None:
            return result
        by_name = {each.topic: each for each in self._specs}
        topics = topics_by_id(self._lake.all_versions(spec.table), self._settings.group)
        problems: dict[TopicId, KgsError] = {}
        with ExitStack() as stack:
            if len(self._specs) == 1:
                self._of(spec, stack, dry_run=dry_run)
            for topic_id, part in chain.from_iterable(
                map(_by_topic_id, _parts(letters, chosen, spec.dead_letters_table))
            ):
                result.letters += part.num_rows
                # A topic id that the table's log does not know is nobody's, and not settled
                each = by_name.get(topics.get(topic_id, spec.topic))
                if each is None:
                    result.unsettled += part.num_rows
                elif topic_id not in problems:
                    try:
                        self._of(each, stack, dry_run=dry_run).redrive(part, result)
                    except KgsError as e:
                        problems[topic_id] = e
        for problem in problems.values():
            raise problem
        return result

    def _of(self, spec: TableSpec, stack: ExitStack, *, dry_run: bool) -> "TopicRedrive":
        """Made with the first letters of the topic."""
        if spec.topic not in self._topics:
            made = TopicRedrive(self._settings, self._lake, spec, dry_run=dry_run)
            self._topics[spec.topic] = stack.enter_context(made)
        return self._topics[spec.topic]


class TopicRedrive(Closing):
    """Redrive of the dead letters of one topic of a table. A context manager."""

    def __init__(self, settings: Settings, lake: Lake, spec: TableSpec, *, dry_run: bool) -> None:
        """See `Redrive.run`."""
        self._lake = lake
        self._settings = settings
        self._masks = masks_of(spec)
        self._storage = Storage.of(settings.lake)
        self._group = settings.group
        self._is_dry = dry_run
        self.spec = spec
        rule = self.spec.rule
        self._spark = SparkTransform(settings.spark, f"kgs redrive {spec.table}")
        self._transform: Transform = self._spark.rows if rule.transform is not None else transform_arrow
        self._columns = columns_of(self.spec, lake)
        is_plain = rule.transform is None and rule.transform_arrow is None
        # A transform gives the table's columns or fails; without one, a table with others is refused as everywhere.
        schema = (
            table_schema(rule, parsed_schema(rule, self._columns))
            if is_plain
            else self._lake.open(self.spec.table).schema
        )
        self._rows = self._lake.table(self.spec.table, schema, layout_of(rule))
        if not dry_run or rule.evolve == "none":  # a dry run parses as if columns had been added
            self._fit(NO_COLUMNS)

    def close(self) -> None:
        """End what transforms run in."""
        self._spark.close()

    def redrive(self, letters: pa.Table, result: RedriveResult) -> None:
        """Redrive letters of the topic, and add to the result what came of them.

        Raises:
            PortError: see `Redrive.run`.
        """
        for _ in range(TRIES):
            base = _store_asked(lambda: look(self._lake, self._group, self.spec, letters), self.spec.table)
            found = RedriveResult(result.table)
            try:
                rows = self._rows_of(base, letters, found)
            except MoreColumnsError as e:
                self._fit(e.columns)
                continue
            if letters.num_rows > 1 and Partitioned(self.spec.rule, rows).cut():
                for half in (letters.slice(0, letters.num_rows // 2), letters.slice(letters.num_rows // 2)):
                    self.redrive(half.combine_chunks(), result)
                return
            if self._is_dry or not rows.num_rows or self._commit(base, rows) is CommitOutcome.COMMITTED:
                result.add(found)
                return
        raise TransientError(f"table {result.table}: others redrive it all the time: run it again when they are done")

    def _fit(self, more: pa.Schema) -> None:
        """Have rows with the table's columns, and it with those that it lacks, where it may have them; as consumers."""
        rule, any_id = self.spec.rule, AppIds(self._group, self.spec.topic, TopicId(""))
        table = TopicTable(self._lake, self.spec, any_id, self._rows.schema, self._columns)
        if rule.evolve != "none" or not rule.names_columns:
            _store_asked(lambda: pinned_rows(self._lake, self.spec), self.spec.table)  # not made here
            table.open()
            if more.names:
                table.add_columns(more)
            self._columns = table.columns
            self._rows = self._lake.table(self.spec.table, table.schema, layout_of(rule))
        self._rows.versions([])  # refuses a table whose columns are not the rule's
        if not self._is_dry:
            table.note_secret(self._masks.token)

    def _commit(self, base: RedriveBase, rows: pa.Table) -> CommitOutcome:
        """Each table by itself: what lands is done, whatever becomes of the others."""
        rule, spec = self.spec.rule, self.spec
        own, sides = routed(rule, spec.side_tables, rows)
        for name, part in [*sides.items(), (spec.table, own)]:
            if not part.num_rows:
                continue
            table = self._rows
            if name != spec.table:
                table = self._lake.table(name, self._rows.schema, layout_of(rule))
            files = write_files(self._storage, name, Partitioned(rule, part))
            failpoint("redrive-written")
            outcome = base.commit(table, part, files)
            failpoint("redriven")
            if outcome is CommitOutcome.REFUSED:
                return outcome
        return CommitOutcome.COMMITTED

    def _rows_of(self, base: RedriveBase, letters: pa.Table, found: RedriveResult) -> pa.Table:
        """Rows of those letters that are to be redriven and can be parsed now, in the table's columns."""
        wanted, found.done, found.unsettled = base.sorted_out(letters)
        parts = [given_schema(self.spec.rule, self._rows.schema).empty_table()]
        for topic_id in wanted["_topic_id"].unique().to_pylist():
            of_topic = wanted.filter(pa.array(wanted["_topic_id"].to_numpy() == topic_id))
            parts.append(self._parsed(TopicId(topic_id), of_topic.combine_chunks(), found))
        rows = pa.concat_tables(parts)
        found.rows = rows.num_rows
        found.passed = rows.select(list(IDENTITY)).group_by(list(IDENTITY)).aggregate([]).num_rows
        found.dropped = wanted.num_rows - sum(found.failed.values()) - found.passed
        return rows

    def _parsed(self, topic_id: TopicId, letters: pa.Table, found: RedriveResult) -> pa.Table:
        spec = self.spec
        plan = TopicPlan.of(spec, topic_id, self._rows.schema, self._columns)
        records, letters, lacking = self._records(topic_id, letters, found)
        parsed = parse_records(plan, records)
        if parsed.waiting:
            raise TransientError(f"table {spec.table}: {next(iter(parsed.waiting.values()))}: run it again")
        if not self._is_dry and (more := plan.more_columns(parsed.missing)):
            raise MoreColumnsError(pa.schema(more))
        bad = {**parsed.bad, **lacking}
        self._note_failed(letters, bad, found)
        rows = rows_of(plan, parsed, records, without=bad)
        try:
            return self._transform(plan, rows)
        except TransformError as e:
            raise PermanentError(f"table {spec.table}: {e}: these dead letters stay") from e

    def _records(
        self, topic_id: TopicId, letters: pa.Table, found: RedriveResult
    ) -> tuple[TopicRecords, pa.Table, dict[int, str]]:
        """Records, the letters that they are of, in one order, and which of them lack something."""
        if not self._masks.fields:
            return records_in(letters), letters, incomplete(letters)
        admin = admin_of(self._settings)
        records, there = reread(self._settings, admin, self.spec.topic, topic_id, letters)
        self._note_failed(letters, dict.fromkeys(sorted({*range(letters.num_rows)} - {*there}), GONE), found)
        return records, letters.take(pa.array(there, pa.int64())), dict(records.faults)

    def _note_failed(self, letters: pa.Table, bad: Mapping[int, str], found: RedriveResult) -> None:
        for i, reason in bad.items():
            code = code_of(reason)
            found.failed[code] += 1
            place = f"{self.spec.topic}:{letters['_partition'][i]} at {letters['_offset'][i]}"
            found.examples.setdefault(code, f"{place}: {with_code(reason)}")


def _by_topic_id(letters: pa.Table) -> Iterator[tuple[TopicId, pa.Table]]:
    for topic_id in letters["_topic_id"].unique().to_pylist():
        yield TopicId(topic_id), letters.filter(pc.equal(letters["_topic_id"], topic_id)).combine_chunks()


def _specs_of(settings: Settings, specs: Sequence[TableSpec], table: str) -> list[TableSpec]:
    found = [spec for spec in specs if spec.table == table]
    if not found:
        topic = next((spec for spec in specs if spec.topic == table), None)
        hint = f"; the table of topic {table} is {topic.table}" if topic else ""
        side = next((spec for spec in specs if table in spec.side_tables.values()), None)
        hint = f"; it is a side table of {side.table}: name that" if side else hint
        raise ConfigError([f"table {table}: no topic fills it under {settings.lake.root}: see 'topics'{hint}"])
    return found


def _parts(letters: PinnedTable, chosen: LetterFilter, name: str) -> Iterator[pa.Table]:
    """The chosen letters, so many at a time as one commit is to take."""
    waiting: list[pa.Table] = []
    rows = size = 0

    def read(file: str) -> pa.Table:
        return chosen.chosen(letters.read(file, DEAD_LETTER_SCHEMA.names).cast(DEAD_LETTER_SCHEMA))

    for file in _store_asked(letters.files, name):
        found = _store_asked(lambda file=file: read(file), name)  # type: ignore[misc]
        step = min(MOST_LETTERS, max(1, found.num_rows * MOST_BYTES // max(found.nbytes, 1)))
        for start in range(0, found.num_rows, step):
            part = found.slice(start, step)
            if waiting and (rows + part.num_rows > MOST_LETTERS or size + part.nbytes > MOST_BYTES):
                yield pa.concat_tables(waiting).combine_chunks()
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + part.num_rows, size + part.nbytes
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _store_asked(ask: Callable[[], T], table: str) -> T:
    """An answer of the lake's store; files that upkeep took away meanwhile are a reason to run it again."""
    try:
        return ask()
    except PortError:
        raise
    except Exception as e:
        raise TransientError(f"table {table}: cannot be read: {one_line(e)}: run it again") from e
