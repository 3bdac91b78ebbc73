"""Columns that a registry adds to a topic with a route: into all of its tables, or into no file."""

import pyarrow as pa
import pytest

from kgs_core.config import TableSpec, TopicRule
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import TransientError
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicId
from tests.core.lake.test_side_tables import ROUTE


def test_a_side_table_that_does_not_take_a_column_is_asked_again(tmp_path, monkeypatch):
    """Until it has, no file has the column: compaction would take it out of the rows for good."""
    rule = TopicRule.model_validate({"topic": "t", "format": "avro", "evolve": "add_columns", "route": ROUTE})
    lake = open_lake(LakeSettings(root=str(tmp_path)), "7")
    ids, spec = AppIds("g", "t", TopicId("id1")), TableSpec("t", "t", "t_dead_letters", rule)
    columns = pa.schema([("s", pa.string())])
    table = TopicTable(lake, spec, ids, columns, columns)
    table.open()
    before, ask = (table.columns, table.schema), lake.columns

    def columns_of(name, *args):
        if name == "side/b":
            raise TransientError("no answer")
        return ask(name, *args)

    monkeypatch.setattr(lake, "columns", columns_of)
    more = pa.schema([("more", pa.int64())])  # as a consumer asks for them: without those that are there
    with pytest.raises(TransientError, match="no answer"):
        table.add_columns(more)
    assert (table.columns, table.schema) == before
    monkeypatch.setattr(lake, "columns", ask)
    table.add_columns(more)
    for name in ("t", "side/a", "side/b"):
        assert "more" in lake.open(name).schema.names
    assert "more" in table.columns.names
