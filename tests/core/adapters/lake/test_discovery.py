"""Topics that only the lake still knows are found by their tables, whatever these are named by."""

from pathlib import Path

import pytest

from kgs_core.adapters.lake.delta_lake import DeltaLake
from kgs_core.adapters.lake.discovery import find_tables
from kgs_core.adapters.lake.storage import Storage
from kgs_core.config import parse_settings
from kgs_core.exactly_once.positions import AppIds
from kgs_core.model import TopicId
from tests.one_column import LAKE, file_of, table_at

RULES = r"""
- {pattern: 'x-.*', table: 'x/{topic}/rows'}
- {pattern: '(?P<team>[a-z]+)\.(?P<what>.+)', not: '.*test', table: '{team}/by-{what}'}
- {topic: named, table: one}
"""


@pytest.fixture
def lake(tmp_path):
    storage = Storage(str(tmp_path))
    tables = {"ads/by-clicks": "ads.clicks", "x/x-1/rows": "x-1", "ads/by-clicks_dead_letters": "ads.clicks",
              "ads/by-other": "ads.else", "ads/by-atest": "ads.atest", "x/far": "x-2"}  # fmt: skip
    for number, (table, topic) in enumerate(tables.items()):
        ids = AppIds("g", topic, TopicId("id"))
        made = table_at(storage, name=table)
        made.commit({ids.position(0): None}, {ids.position(0): 1}, [file_of(storage, number, name=table)])
    return DeltaLake(LAKE.model_copy(update={"root": storage.root}))


@pytest.mark.parametrize("in_kafka", [[], ["ads.clicks"], ["ads.clicks", "x-1"]])
def test_every_table_of_a_rule_is_found_and_no_other(lake, in_kafka):
    text = f"group: g\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {lake.root}}}\ntopics:{RULES}"
    found = find_tables(parse_settings(text.encode(), "kgs.yaml", {}), lake, in_kafka, None)
    assert {spec.topic: spec.table for spec in found} == {
        "ads.clicks": "ads/by-clicks", "x-1": "x/x-1/rows", "named": "one",
    }  # fmt: skip


def test_tables_of_another_group_are_not(lake):
    text = f"group: other\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {lake.root}}}\ntopics:{RULES}"
    assert [spec.topic for spec in find_tables(parse_settings(text.encode(), "kgs.yaml", {}), lake, [], None)] == [
        "named"
    ]


def test_a_name_may_have_an_empty_part(tmp_path):
    storage = Storage(str(tmp_path))
    for number, (table, topic) in enumerate({"sales": "orders", "sales-eu": "orders-eu"}.items()):
        made = table_at(storage, name=table)
        position = AppIds("g", topic, TopicId("id")).position(0)
        made.commit({position: None}, {position: 1}, [file_of(storage, number, name=table)])
    rules = "[{pattern: 'orders(?P<where>-eu)?', table: 'sales{where}'}]"
    text = f"group: g\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {storage.root}}}\ntopics: {rules}"
    lake = DeltaLake(LAKE.model_copy(update={"root": storage.root}))
    found = find_tables(parse_settings(text.encode(), "kgs.yaml", {}), lake, [], None)
    assert {spec.topic: spec.table for spec in found} == {"orders": "sales", "orders-eu": "sales-eu"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("00000000000000000002.json", b"{}\n"),
        ("00000000000000000000.json", b"[1, 2]\n"),
        ("00000000000000000000.json", b"7\n"),
        ("00000000000000000000.json", b'"text"\n'),
        ("00000000000000000000.json", b"null\n"),
        ("00000000000000000000.json", b'{"txn": 5}\n'),
        ("00000000000000000000.json", b'{"txn": {"appId": "a", "version": "x"}}\n'),
        ("00000000000000000000.json", b'{"commitInfo": []}\n'),
        ("00000000000000000000.json", b'{"commitInfo": {"kgs": [1]}}\n'),
        ("00000000000000000005.checkpoint.parquet", b"PAR1 is no checkpoint"),
        ("00000000000000000005.checkpoint.parquet", b""),
    ],
)
def test_a_broken_log_hides_no_other_table(lake, caplog, name, content):
    log = Path(lake.root) / "x/x-9/rows/_delta_log"
    log.mkdir(parents=True)
    (log / name).write_bytes(content)
    text = f"group: g\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {lake.root}}}\ntopics:{RULES}"
    found = find_tables(parse_settings(text.encode(), "kgs.yaml", {}), lake, [], None)
    assert {spec.topic for spec in found} == {"ads.clicks", "x-1", "named"}
    assert "x/x-9/rows" in caplog.text
