"""Topics that only the lake still knows are found by their tables, whatever these are named by."""

from pathlib import Path

import pytest

from kgs_core.config import parse_settings
from kgs_core.errors import ConfigError, PermanentError, TransientError
from kgs_core.lake.delta import delta_log
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.log_store import DiskLog
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import find_tables
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
        ("00000000000000000000.json", b'{"txn": {"appId": "a", "version": 1e999}}\n'),
        ("00000000000000000000.json", b"[" * 100_000),
        ("00000000000000000000.json/a/file", b""),
        ("_last_checkpoint/a/file", b""),
        ("00000000000000000000.json", b'{"commitInfo": []}\n'),
        ("00000000000000000000.json", b'{"commitInfo": {"kgs": [1]}}\n'),
        ("00000000000000000005.checkpoint.parquet", b"PAR1 is no checkpoint"),
        ("00000000000000000005.checkpoint.parquet", b""),
    ],
)
def test_a_broken_log_hides_no_other_table(lake, caplog, name, content):
    log = Path(lake.root) / "x/x-9/rows/_delta_log"
    (log / name).parent.mkdir(parents=True)
    (log / name).write_bytes(content)
    text = f"group: g\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {lake.root}}}\ntopics:{RULES}"
    found = find_tables(parse_settings(text.encode(), "kgs.yaml", {}), lake, [], None)
    assert {spec.topic for spec in found} == {"ads.clicks", "x-1", "named"}
    assert "x/x-9/rows" in caplog.text


def _settings(root, rules):
    text = f"group: g\nkafka: {{bootstrap_servers: 'h:1'}}\nlake: {{root: {root}}}\ntopics: {rules}"
    return parse_settings(text.encode(), "kgs.yaml", {})


def _filled(root, tables):
    for number, (table, topic) in enumerate(tables.items()):
        made = table_at(Storage(root), name=table)
        position = AppIds("g", topic, TopicId("id")).position(0)
        made.commit({position: None}, {position: 1}, [file_of(Storage(root), number, name=table)])
    return DeltaLake(LAKE.model_copy(update={"root": root}))


@pytest.mark.parametrize("content", [b'{"version": 1e999}', b"[" * 100_000, b'"7"', b"\xff"])
def test_a_broken_note_of_the_last_checkpoint_is_none(lake, content):
    Path(lake.root, "x/x-1/rows/_delta_log/_last_checkpoint").write_bytes(content)
    assert "x-1" in {spec.topic for spec in find_tables(_settings(lake.root, RULES), lake, [], None)}


@pytest.mark.parametrize("folder", ["50%20off", "elsewhere"])
def test_a_folder_that_can_be_no_table_hides_no_other(tmp_path, caplog, folder):
    lake = _filled(str(tmp_path / "lake"), {"orders": "orders"})
    (tmp_path / "lake/50%20off").mkdir()
    (tmp_path / "lake/elsewhere").symlink_to("/")
    found = find_tables(_settings(lake.root, "[{pattern: '.*', table: '{topic}'}]"), lake, [], None)
    assert [spec.topic for spec in found] == ["orders"]
    assert folder in caplog.text


@pytest.mark.parametrize(("table", "shape"), [("orders", "{topic}"), ("a/orders", "a/{topic}"), ("a/b", "{t}/{u}")])
def test_a_folder_that_may_not_be_read_hides_no_other(tmp_path, caplog, monkeypatch, table, shape):
    """As `lost+found`, where the lake's root is a disk of its own."""
    lake = _filled(str(tmp_path), {table: table.replace("/", ".") if "{u}" in shape else "orders"})
    for folder in ("lost+found", "a/lost+found"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)

    def refused(of):
        def call(self, *given):
            if "lost+found" in f"{self._folder} {given}":
                raise PermissionError(13, "Permission denied", f"{self._folder}")
            return of(self, *given)

        return call

    for name in ("_all", "_stamp", "read"):
        monkeypatch.setattr(DiskLog, name, refused(getattr(DiskLog, name)))
    listed = lake.folders

    def folders(under):
        if "lost+found" in under:
            raise PermanentError("cannot be listed") from PermissionError(13, "Permission denied")
        return listed(under)

    monkeypatch.setattr(lake, "folders", folders)
    pattern = r"(?P<t>[a-z]+)\.(?P<u>.+)" if "{u}" in shape else ".*"
    found = find_tables(_settings(lake.root, f"[{{pattern: '{pattern}', table: '{shape}'}}]"), lake, [], None)
    assert [spec.table for spec in found] == [table]
    assert "lost+found" in caplog.text


def test_a_gone_topic_beside_one_whose_name_differs_in_case_alone(tmp_path):
    lake = _filled(str(tmp_path), {"Orders": "Orders", "orders": "orders"})
    settings = _settings(lake.root, "[{pattern: '.*', table: '{topic}'}]")
    found = find_tables(settings, lake, ["orders", "other"], None)
    assert [(spec.topic, spec.table) for spec in found] == [
        ("Orders", "Orders"), ("orders", "orders"), ("other", "other"),
    ]  # fmt: skip
    assert [spec.topic for spec in find_tables(settings, lake, [], ["Orders"])] == ["Orders"]
    with pytest.raises(ConfigError, match="collision"):
        find_tables(settings, lake, ["orders", "Orders"], None)


def test_a_gone_topic_whose_dead_letters_table_has_become_another_topics(tmp_path, caplog):
    lake = _filled(str(tmp_path), {"a": "a"})
    found = find_tables(
        _settings(lake.root, "[{pattern: '.*', table: '{topic}'}]"), lake, ["a_dead_letters", "b"], None
    )
    assert [spec.topic for spec in found] == ["a_dead_letters", "b"]
    assert "topics 'a_dead_letters' and 'a'" in caplog.text


def _refusing(monkeypatch, *tables):
    """The store answers nothing about the logs of these."""
    all_of = DiskLog._all

    def refused(self, *given):
        if any(f"/{table}/" in f"{self._folder}/" for table in tables):
            raise OSError(5, "Input/output error")
        return all_of(self, *given)

    monkeypatch.setattr(DiskLog, "_all", refused)
    monkeypatch.setattr(delta_log.time, "sleep", lambda _: None)


def test_a_table_that_is_refused_for_now_hides_no_other_and_is_told(lake, monkeypatch):
    _refusing(monkeypatch, "ads/by-clicks")
    settings, unread = _settings(lake.root, RULES), []
    assert [spec.topic for spec in find_tables(settings, lake, [], None, unread)] == ["named", "x-1"]
    (left,) = unread
    assert (left.table, left.rule.pattern) == ("ads/by-clicks", settings.topics[1].pattern)
    assert "Input/output error" in str(left.error)
    with pytest.raises(TransientError, match="Input/output error"):
        find_tables(settings, lake, [], None)
    with pytest.raises(TransientError, match="Input/output error"):  # it may be the one that was chosen
        find_tables(settings, lake, [], ["ads.clicks"], [])
    assert [spec.topic for spec in find_tables(settings, lake, [], ["x-1"], [])] == ["x-1"]


def test_where_no_table_is_read_it_is_the_store(lake, monkeypatch):
    _refusing(monkeypatch, "ads", "x")
    with pytest.raises(TransientError, match="Input/output error"):
        find_tables(_settings(lake.root, RULES), lake, [], None, [])
