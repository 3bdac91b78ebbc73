"""What docs/formats.md says of each type, tried."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable

from kgs_core.config import TopicRule
from kgs_core.config.rule.field_types import FIELD_TYPES, canonical_type
from kgs_core.ingest.formats.json.json_objects import parse_json
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.delta.delta_table import DeltaTopicTable
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.files.row_schema import schema_of
from kgs_core.lake.files.storage import Storage
from tests.one_column import LAKE

PAGE = (Path(__file__).parents[2] / "docs/formats.md").read_text()
ROWS = {
    re.findall("`([^`]+)`", cells[1])[0]: [re.findall("`([^`]+)`", cell) for cell in cells[2:6]]
    for line in PAGE[PAGE.index("| type | taken") :].partition("\n\n")[0].splitlines()[2:]
    if (cells := line.split("|"))
}


def parse(schema, *texts, **rule):
    values = pa.array([f'{{"c": {text}}}'.encode() for text in texts], pa.binary())
    return parse_json(ValueBatch(values, schema, **rule))


def test_every_type_is_in_the_table():
    assert [re.match(r"\w+", kind)[0] for kind in ROWS] != []
    assert {re.match(r"\w+", kind)[0] for kind in ROWS} == {re.match(r"\w+", kind)[0] for kind in FIELD_TYPES}


@pytest.mark.parametrize("kind", ROWS)
def test_json_becomes_what_the_table_says(kind, tmp_path):
    taken, refused, (arrow,), (delta,) = ROWS[kind]
    schema = schema_of({"c": kind})
    assert str(schema.field("c").type) == arrow
    parsed = parse(schema, *taken, *refused, "null")
    assert list(parsed.good) == [*range(len(taken)), len(taken) + len(refused)]
    assert None not in parsed.table["c"].to_pylist()[:-1]
    assert parsed.table["c"].to_pylist()[-1] is None
    storage = Storage(str(tmp_path))
    DeltaTopicTable(TableLog(storage, "t", schema, LAKE)).create()
    table = DeltaTable(storage.uri("t"))
    (field,) = table.schema().fields
    assert str(getattr(field.type, "type", field.type)) == delta
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_example_of_a_schema_is_one():
    rule = yaml.safe_load(re.search(r"```yaml\n(topics:.*?)```", PAGE, re.DOTALL)[1])["topics"][0]
    made = TopicRule.model_validate(rule)
    assert made.fields["customer"] == canonical_type({"id": "bigint", "name": "string"})


def test_example_of_a_rescue_is_one():
    value, schema, rescued = re.search(r"For `(.*?)` and\s+`schema: (.*?)` it is\s+`(.*?)`", PAGE).groups()
    rule = TopicRule.model_validate({"topic": "t", "format": "json", "schema": yaml.safe_load(schema)})
    batch = ValueBatch(pa.array([value.encode()]), schema_of(rule.fields), rescue=True)
    assert parse_json(batch).rescued.to_pylist() == [rescued]
