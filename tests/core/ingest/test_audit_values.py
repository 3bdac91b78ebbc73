"""`kgs audit --values` where values cannot be judged; with a real broker it is in tests/system/test_audit_values.py."""

from types import SimpleNamespace

import pytest

from kgs_core.errors import TransientError
from kgs_core.ingest.replay import audit_values as module
from kgs_core.ingest.replay.audit_values import audit_values
from kgs_core.ingest.worker.process_batch import TransformError
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.files.layout import NULL_FOLDER
from kgs_core.lake.rule import Fault, LakeAudit, PartitionAudit, StoredPositions, TableAudit
from kgs_core.model import TopicId
from tests.core.lake.test_judgements import SCHEMAS, AvroRecord, AvroSink, registry
from tests.kgs_yaml import kgs_yaml
from tests.layout_sink import GivenRecord, LayoutSink

__all__ = ["registry"]
LOG = [(7, "a"), (8, "b"), (9, "c"), (7, None), (7, ""), (7, NULL_FOLDER)]


COLUMNS = {"format": "avro", "schema": {"s": "string", "n": "long"}}


def settings_of(root, *rules):
    return kgs_yaml(root, *rules, registry={"url": "http://127.0.0.1:9"})


@pytest.fixture
def kafka(monkeypatch):
    """Takes the records that topics have."""
    known, records = dict.fromkeys("tu", TopicDescription(TopicId("id1"), 1)), []
    monkeypatch.setattr(module, "admin_of", lambda _: SimpleNamespace(describe=lambda _: known))
    monkeypatch.setattr(module, "load_log", lambda *given: given[-1](records))
    return records


@pytest.fixture
def settings(tmp_path, kafka, registry):
    """Of two topics, whose tables are in a folder; records 2 and 3 are dead letters, 4 and 5 null in Delta's form."""
    for topic in ("t", "u"):
        AvroSink(tmp_path, {0: LOG}, topic=topic, partition_by=["s"]).started().drain()
    kafka += [AvroRecord(0, o, record) for o, record in enumerate(LOG)]
    return settings_of(tmp_path, *({"topic": topic, **COLUMNS, "partition_by": ["s"]} for topic in "tu"))


def audited(settings, *topics):
    stored = StoredPositions(TopicId("id1"), 0, 0, len(LOG))
    part = PartitionAudit(stored, 4, 2, ())
    tables = (TableAudit(topic, topic, "one_to_one", 1, (part,)) for topic in topics or ("t", "u"))
    return audit_values(settings, LakeAudit(tuple(tables)))


def test_rows_whose_schema_the_registry_forgot_are_neither_right_nor_changed(settings, registry):
    found = audited(settings)
    assert [(table.ok, table.compared) for table in found.tables] == [(True, 4)] * 2
    registry.known = SCHEMAS - {8}
    table = audited(settings).tables[0]
    assert (table.ok, table.compared, table.count(Fault.CHANGED)) == (False, 3, 0)
    assert table.problem == "values of 1 rows not compared: the schema registry lacks their schemas: audit again"


@pytest.mark.parametrize("error", [TransientError, TransformError])
def test_a_table_that_cannot_be_compared_hides_no_other(settings, monkeypatch, error):
    def parse(plan, records):
        if plan.spec.topic == "t":
            raise error("no answer")
        return right(plan, records)

    right = module.parse_records
    monkeypatch.setattr(module, "parse_records", parse)
    first, second = audited(settings).tables
    assert (first.ok, first.problem, first.compared) == (False, "values not compared: no answer", None)
    assert (second.ok, second.compared) == (True, 4)


def test_bad_records_alone_are_not_given_to_a_transform(tmp_path, registry):
    sink = AvroSink(tmp_path, {0: LOG}, transform_arrow="os:getcwd").started()
    comparison = module._Comparison(sink.plan(), {})
    comparison.take([AvroRecord(0, 3, LOG[3])])
    assert comparison.compared == 0


def test_columns_are_those_that_a_consumer_makes_of_a_value_and_not_those_of_the_table(tmp_path, kafka):
    """The table has one more, of an earlier rule or of a transform."""
    log = {0: [{"s": "a", "i": 1}, {"s": "b", "i": 2}]}
    LayoutSink(tmp_path, {0: []}, schema={"s": "string", "i": "long"}, evolve="add_columns").started()
    LayoutSink(tmp_path, log, schema={"s": "string"}, evolve="add_columns").started().drain()
    kafka += [GivenRecord(0, o, record) for o, record in enumerate(log[0])]
    rule = {"format": "json", "schema": {"s": "string"}, "evolve": "add_columns"}
    (table,) = audited(settings_of(tmp_path, rule), "t").tables
    assert (table.ok, table.compared, table.problem) == (True, 2, "")


def test_a_topic_that_is_gone_hinders_no_other_of_nearly_its_name(tmp_path, kafka, registry):
    AvroSink(tmp_path, {0: []}).started()
    gone, there = audited(settings_of(tmp_path, {"pattern": "[tT]", **COLUMNS}), "T", "t").tables
    assert (gone.notes, there.compared) == (("values not compared: no table or no topic",), 0)
