"""Columns that values have and their table lacks: from the worker by a question of the round into the table."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kgs_core.config import resolve_tables
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.errors import ConfigError, TransientError
from kgs_core.ingest.driver.rounds import Ingest
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.round.stops import StopCause
from kgs_core.ingest.worker.topic_job import MoreColumnsError
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import OffsetRange
from tests.core.ingest.test_rounds import ID, Kafka
from tests.group_offsets import MemoryOffsets
from tests.growing_values import FORMAT, NAME
from tests.kgs_yaml import kgs_yaml
from tests.processing import process_topic
from tests.sink import FakeRecord

OLD, NEW = b'{"i": 1}', b'{"i": 2, "j": 3}'


class Record(FakeRecord):
    """A record of a chosen value."""

    values = ()

    def value(self):
        return type(self).values[self.at]


class Room:
    """A consumer of topic `t`, whose records are these."""

    def __init__(self, root, evolve, *values):
        kind = type("These", (Record,), {"values": values})
        self.records = [kind(0, at) for at in range(len(values))]
        self.storage, self.kafka = Storage(str(root)), Kafka()
        settings = kgs_yaml(root, {"format": NAME, "evolve": evolve}, registry={"url": "http://h:1"})
        self.lake = open_lake(settings.lake)
        admin = SimpleNamespace(offsets=lambda tps, which: dict.fromkeys(tps, 0))
        opener = TopicOpener(settings, self.lake, admin, MemoryOffsets(), None)
        table = opener.open(resolve_tables(settings, ["t"])["t"], ID, 1)
        self.state = TopicState(table)
        self.state.own(frozenset({0}))
        self.end = len(values)
        offsets = SimpleNamespace(report=lambda topic_id, table, positions: None)
        self.ingest = Ingest({"t": self.state}, settings.consumer, self, self.kafka, offsets)

    def read(self, question, jobs):
        result = ReadResult()
        for tp, start in question.start.items():
            if start < self.end:
                span = OffsetRange(start, self.end)
                try:
                    batch, _ = process_topic(
                        self.storage, jobs["t"], records_of(self.records[start : self.end]), {0: span}
                    )
                    result.batches.append(batch)
                except MoreColumnsError as e:
                    result.wider[tp.topic] = e.columns
        return result

    def end_task(self):
        """Holds nothing."""

    def rows(self):
        return DeltaTable(self.storage.uri("t")).to_pyarrow_table().select(self.state.table.columns.names).to_pylist()


@pytest.fixture
def room(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, NAME, FORMAT)
    made = []

    def make(evolve, *values):
        made.append(Room(tmp_path, evolve, *values))
        return made[-1]

    yield make
    for each in made:
        each.ingest.close()


@pytest.mark.parametrize(("evolve", "kind"), [("add_columns", pa.int32()), ("widen", pa.int64())])
def test_the_table_is_given_them_and_the_same_offsets_are_read_again(room, evolve, kind):
    here = room(evolve, OLD, NEW)
    assert here.ingest.round().batches == 0
    assert here.state.progress.positions == {0: 0}
    assert not here.state.progress.stops
    assert here.ingest.round().records == 2
    assert here.rows() == [{"i": 1, "j": None}, {"i": 2, "j": 3}]
    assert here.state.table.columns == pa.schema([("i", kind), ("j", kind)])


def test_a_table_that_cannot_be_given_them_stops_its_topic_for_a_while_and_nothing_is_committed(room, monkeypatch):
    here = room("add_columns", NEW)

    def refuse(*_):
        raise TransientError("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(here.lake), "columns", refuse)
        here.ingest.round()
    assert {stop.cause for stop in here.state.progress.stops.values()} == {StopCause.NO_ANSWER}
    assert here.state.table.stored_position(0) == 0
    here.state.progress = here.state.progress.looking_at_once(0.0)
    here.ingest.round()
    here.ingest.round()
    assert here.rows() == [{"i": 2, "j": 3}]


def test_a_name_that_differs_only_in_case_is_passed_over_and_read_once(room):
    here = room("add_columns", b'{"i": 1, "I": 2}')
    assert here.ingest.round().records == 1
    assert here.rows() == [{"i": 1}]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {"format": "json", "schema": {"i": "int"}, "transform_arrow": "m:f"},
            "with a transform the columns are what that gives",
        ),
        ({"format": "raw"}, "format 'raw' never has other columns: drop 'evolve'"),
    ],
)
def test_evolve_where_it_says_nothing_is_refused(rule, message):
    with pytest.raises(ConfigError, match=message):
        kgs_yaml("/l", {"evolve": "add_columns", **rule})
