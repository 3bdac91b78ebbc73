"""Every event that kgs sends is one of OpenLineage's specification, with all its facets; the files are a copy of it."""

import json
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from openlineage.client.serde import Serde
from referencing import Registry, Resource

from kgs_core.lineage.events import LineageTable, RunNews, run_event
from tests.configuration import settings_of

RUN = "0193a1f2-7c00-4000-8000-000000000001"
FILES = [json.loads(file.read_text()) for file in (Path(__file__).parent / "specification").glob("*.json")]
SPECIFICATION = Registry().with_resources([(tree["$id"], Resource.from_contents(tree)) for tree in FILES])
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
SIMPLE = [
    pa.int64(),
    pa.string(),
    pa.decimal128(10, 2),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.bool_(),
    pa.binary(),
]
TYPES = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.dictionaries(st.text(min_size=1), inner, min_size=1).map(lambda fields: pa.struct([*fields.items()])),
    ),
    max_leaves=8,
)
TABLES = st.builds(
    LineageTable,
    topic=st.text(min_size=1),
    table=st.text(min_size=1),
    schema=st.dictionaries(st.text(min_size=1), TYPES).map(lambda fields: pa.schema([*fields.items()])),
)


def check(event):
    """Refuse what is no event, or has a facet that is not as the schema says that it names itself."""
    assert event["schemaURL"].partition("#")[0] == EVENT
    for tree, schema in [(event, event["schemaURL"]), *facets(event)]:
        checker = Draft202012Validator.FORMAT_CHECKER
        Draft202012Validator({"$ref": schema}, registry=SPECIFICATION, format_checker=checker).validate(tree)


def facets(event):
    """Each facet, under its name, and the address of its own file's schema."""
    datasets = [*event["inputs"], *event["outputs"]]
    for owner in (event["run"], event["job"], *datasets):
        for name, facet in owner.get("facets", {}).items():
            yield {name: facet}, facet["_schemaURL"].partition("#")[0]


@given(st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL"]), st.lists(TABLES, max_size=3), st.text())
def test_every_event_is_one_of_the_specification(kind, tables, why):
    settings = settings_of(kafka={"bootstrap_servers": "b1:9092,b2:9092"}, lake={"root": "s3://bucket/lake"})
    event = run_event(RunNews(kind, 1_700_000_000.5, tuple(tables), why), settings, "shop", RUN)
    check(json.loads(Serde.to_json(event)))
