"""A batch replayed under any split gives the same, whatever its format: rows, dead letters with reasons, what waits.

A consumer that dies replays its records in other batches than before, and beside other neighbours.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.cimpl import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.formats.parsed import MAX_REASON
from kgs_core.ingest.worker import sorted_records
from kgs_core.ingest.worker.process_batch import prepare_topic
from kgs_core.ingest.worker.topic_job import TopicJob, TopicPlan, load_hook
from kgs_core.lake.files import layout
from kgs_core.lake.files.layout import table_schema
from kgs_core.lake.files.parquet_writer import write_table
from kgs_core.lake.files.row_schema import parsed_schema, value_schema
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange
from tests.faulty_registry import FaultyRegistry, running_registry
from tests.processing import sorted_of
from tests.registry_values import UNKNOWN_ID, VALUES
from tests.slow_parser import timeless
from tests.topic_jobs import topic_job

PARTITIONS = 3
CODE = 20  # of an error, in front of its reason
TOO_LATE_MS = 2**60  # no column takes it
PARTITIONED = {"partition_by": ["day(_timestamp)"]}
OF_REGISTRY = [name for name, each in FORMATS.items() if each.columns_of is not None]
RECORDS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, PARTITIONS - 1)), max_size=24)
SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@dataclass(frozen=True)
class TopicWorld:
    """A topic of one format, and the registry of its schemas.

    Attributes:
        job: of a table of all columns but those that `VALUES` leaves out.
        value: by its number.
    """

    job: TopicJob
    registry: FaultyRegistry
    value: Callable[[int], bytes | None]

    def with_rule(self, **more: Any) -> "TopicWorld":
        """The same with another rule, in the columns that it makes of them."""
        plan, rule = self.job.plan, self.job.plan.spec.rule
        rule = TopicRule.model_validate(rule.model_dump(exclude_unset=True, by_alias=True) | more)
        schema = table_schema(rule, parsed_schema(rule, plan.values))
        return replace(
            self, job=TopicJob(TopicPlan.of(replace(plan.spec, rule=rule), plan.topic_id, schema, plan.values), {})
        )


@contextmanager
def world_of(name: str) -> Iterator[TopicWorld]:
    values = VALUES[name]
    with running_registry() as registry:
        ids = values.register(registry)
        of = RegistrySettings(url=registry.url)
        rule = TopicRule.model_validate({"topic": "t", "key_format": "string", "headers": {"h": "n"}, **values.rule})
        found = FORMATS[name].columns_of
        columns = value_schema(rule) if found is None else load_hook(found)("t", rule, of)
        columns = pa.schema([f for f in columns if f.name not in values.left_out])
        job = topic_job(rule, columns, registry=of)
        known: dict[int, bytes | None] = {}

        def value(number: int) -> bytes | None:
            if number not in known:
                known[number] = values.value(Random(number), ids)
            return known[number]

        sorted_of(job, records_of([Message(topic="t", partition=0, offset=n, value=value(n)) for n in range(300)]))
        yield TopicWorld(job, registry, value)


@pytest.fixture(scope="module", params=FORMATS)
def world(request):
    with world_of(request.param) as found:
        yield found


@pytest.fixture(scope="module", params=OF_REGISTRY)
def worlds_up_and_away(request):
    """Of the same topic; the other's registry is gone, but for the schemas that were asked for before."""
    with world_of(request.param) as up, world_of(request.param) as away:
        away.registry.go_down()
        yield up, away


@pytest.fixture(scope="module", params=[name for name, each in FORMATS.items() if each.rescues])
def world_that_rescues(request):
    with world_of(request.param) as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def _no_waiting_for_schemas():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorted_records, "UNKNOWN_SCHEMA_S", 0.0)
        yield


def messages_of(world: TopicWorld, records: Sequence[tuple[int, int]]) -> list[Any]:
    """Records, some of them with a time that no column takes; offsets have gaps, as where transactions were."""
    ends, found = [0] * PARTITIONS, []
    for number, partition in records:
        ends[partition] += 1 + number % 2
        ms = TOO_LATE_MS if number % 29 == 0 else 1_700_000_000_000 + number * 40_000_000
        found.append(
            Message(
                topic="t",
                partition=partition,
                offset=ends[partition],
                value=world.value(number),
                key=b"\xff" if number % 31 == 0 else b"k%d" % number if number % 5 else None,
                headers=[("n", b"\xff" if number % 37 == 0 else b"%d" % number)] if number % 3 else None,
                timestamp=(1, ms),
            )
        )
    return found


def replayed(job: TopicJob, messages: Sequence[Any], sizes: Sequence[int]) -> Mapping[str, Any]:
    """What comes of records that are read in batches of these sizes, in turn, until every partition is at its end.

    A partition that stops or waits is not read on, as with a consumer until it tries again.
    """
    left, turn = list(messages), 0
    rows, letters, stopped, waiting = [], [], {}, {}
    while left:
        taken = left[: sizes[turn % len(sizes)]]
        ranges = {
            p: OffsetRange(min(each), max(each) + 1)
            for p in {m.partition() for m in taken}
            if (each := [m.offset() for m in taken if m.partition() == p])
        }
        found, written = prepare_topic(Storage("unused"), job, records_of(taken), ranges)
        parts = [part for _, part in written.files()]
        assert len(parts) <= layout.MOST_FILES
        rows += [row for part in parts for row in plain(part)]
        letters += plain(found.dead_letters)
        reasons = found.dead_letters["error"].to_pylist()
        assert all(len(reason) <= MAX_REASON + CODE and "\n" not in reason for reason in reasons)
        done = found.batch.ranges
        assert done or not (parts or reasons), "of no range nothing is written"
        for p, (offset, why, waits) in found.cuts.items():
            (waiting if waits else stopped)[p] = offset, why
        before = len(left)
        left = [
            m
            for m in left
            if m.partition() not in found.cuts and (m.partition() not in done or m.offset() >= done[m.partition()].end)
        ]
        assert len(left) < before, "a batch that reads nothing"
        turn += 1
    return {"rows": sorted(rows), "letters": sorted(letters), "stopped": stopped, "waiting": waiting}


def plain(table: pa.Table) -> list[tuple[int, int, str]]:
    """Rows by place, as texts that tell null, NaN and -0.0 apart.

    Times are numbers, since pyarrow has years that Python lacks. Maps and structs are tuples, as polars has no maps.
    """
    numbers = table.cast(pa.schema([(f.name, timeless(f.type)) for f in table.schema]))
    return [(row["_partition"], row["_offset"], repr(tupled(row))) for row in numbers.to_pylist()]


def without_maps(kind: pa.DataType) -> pa.DataType:
    """The type with lists of structs for maps."""
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", without_maps(kind.key_type)), ("value", without_maps(kind.item_type))]))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, without_maps(f.type)) for f in kind])
    return pa.list_(without_maps(kind.value_type)) if pa.types.is_list(kind) else kind


def tupled(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(tupled, value.values()))
    return type(value)(map(tupled, value)) if isinstance(value, list | tuple) else value


def places(found: Sequence[Any]) -> set[tuple[int, int]]:
    return {(partition, offset) for partition, offset, *_ in found}


@given(records=RECORDS, sizes=SIZES)
@settings(max_examples=40)
def test_any_split_gives_the_same_rows_and_dead_letters(world, records, sizes):
    messages = messages_of(world, records)
    together = replayed(world.job, messages, [len(messages) + 1])
    assert len(together["rows"]) + len(together["letters"]) == len(messages)
    assert together["stopped"] == together["waiting"] == {}
    assert replayed(world.job, messages, sizes) == together
    assert replayed(world.job, messages, [1]) == together


@given(records=RECORDS, sizes=SIZES)
@settings(max_examples=20)
def test_a_layout_that_cuts_batches_shorter_changes_no_row(world, records, sizes):
    messages = messages_of(world, records)
    wanted = replayed(world.job, messages, [len(messages) + 1])
    with patch.object(layout, "MOST_FILES", 2):
        assert replayed(world.with_rule(**PARTITIONED).job, messages, sizes) == wanted


@given(records=RECORDS, sizes=SIZES)
@settings(max_examples=20)
def test_any_split_stops_at_the_same_bad_record(world, records, sizes):
    messages = messages_of(world, records)
    letters = replayed(world.job, messages, [len(messages) + 1])["letters"]
    job = world.with_rule(on_error="stop").job
    together = replayed(job, messages, [len(messages) + 1])
    stops = {p: min(offset for q, offset in places(letters) if q == p) for p, _ in places(letters)}
    assert {p: at for p, (at, _) in together["stopped"].items()} == stops
    assert together["letters"] == []
    assert replayed(job, messages, sizes) == replayed(job, messages, [1]) == together


@given(records=RECORDS, sizes=SIZES)
@settings(max_examples=20)
def test_any_split_waits_at_the_same_record_while_the_registry_is_away(worlds_up_and_away, records, sizes):
    up, away = worlds_up_and_away
    messages = messages_of(up, [(number, p) for number, p in records if number % 31 and number % 37])  # bad in any case
    judged = replayed(up.job, messages, [len(messages) + 1])
    together = replayed(away.job, messages, [len(messages) + 1])
    unknown = [each for each in judged["letters"] if f"no schema {UNKNOWN_ID}" in each[2]]
    ends = {p: min(offset for q, offset in places(unknown) if q == p) for p, _ in places(unknown)}
    assert {p: at for p, (at, _) in together["waiting"].items()} == ends
    for name in ("rows", "letters"):
        assert together[name] == [each for each in judged[name] if each[1] < ends.get(each[0], each[1] + 1)]
    assert replayed(away.job, messages, sizes) == replayed(away.job, messages, [1]) == together


@given(numbers=st.lists(st.integers(0, 3_000), max_size=12))
@settings(max_examples=40)
def test_unknown_fields_that_are_rescued_change_no_verdict(world_that_rescues, numbers):
    world = world_that_rescues
    messages = messages_of(world, [(number, 0) for number in numbers])
    ignored, rescued = (
        sorted_of(world.with_rule(unknown_fields=each).job, records_of(messages)) for each in ("ignore", "rescue")
    )
    assert plain(rescued.rows.drop_columns(["_rescued"])) == plain(ignored.rows)
    assert plain(rescued.dead_letters) == plain(ignored.dead_letters)
    assert rescued.cuts == ignored.cuts


def test_a_record_without_a_value_is_a_row_only_where_its_format_takes_null(world):
    found = sorted_of(world.job, records_of([Message(topic="t", offset=0, value=None)]))
    assert found.rows.num_rows == FORMATS[world.job.plan.spec.rule.format].takes_null
    assert found.rows.num_rows + found.dead_letters.num_rows == 1


@given(numbers=st.lists(st.integers(0, 3_000), min_size=1, max_size=12))
@settings(max_examples=15)
def test_rows_are_read_back_as_they_were_written(world, tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("lake")
    (folder / "t").mkdir()
    rows = sorted_of(world.job, records_of(messages_of(world, [(number, 0) for number in numbers]))).rows
    file = write_table(Storage(str(folder)), "t", rows.to_batches(), world.job.plan.schema)
    path = folder / "t" / file.path
    assert file.rows == rows.num_rows
    by_arrow = pq.read_table(path)
    assert by_arrow.schema == world.job.plan.schema
    by_arrow.validate(full=True)
    assert plain(by_arrow) == plain(rows)
    by_polars = pl.read_parquet(path).to_arrow()
    assert plain(by_polars.cast(pa.schema([(f.name, without_maps(f.type)) for f in rows.schema]))) == plain(rows)
