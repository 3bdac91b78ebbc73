"""Topics that only the lake still knows are found by their tables, whatever these are named by."""

from pathlib import Path

import pytest

from kgs_core.errors import ConfigError, PermanentError, TransientError
from kgs_core.lake.delta.delta_lake import DeltaLake
from kgs_core.lake.delta.log_store import DiskLog
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.discovery import find_tables
from kgs_core.model import TopicId
from tests.kgs_yaml import kgs_yaml
from tests.one_column import LAKE, file_of, table_at

RULES = (
    {"pattern": "x-.*", "table": "x/{topic}/rows"},
    {"pattern": r"(?P<team>[a-z]+)\.(?P<what>.+)", "not": ".*test", "table": "{team}/by-{what}"},
    {"topic": "named", "table": "one"},
)
ALL = {"pattern": ".*", "table": "{topic}"}


def found_in(lake, *rules, kafka=(), chosen=None, unread=None, group="g"):
    return find_tables(kgs_yaml(lake.root, *(rules or RULES), group=group), lake, [*kafka], chosen, unread)


def topics_of(*given, **more):
    return [spec.topic for spec in found_in(*given, **more)]


def filled(root, tables):
    for number, (table, topic) in enumerate(tables.items()):
        made = table_at(Storage(root), name=table)
        position = AppIds("g", topic, TopicId("id")).position(0)
        made.commit({position: None}, {position: 1}, [file_of(Storage(root), number, name=table)])
    return DeltaLake(LAKE.model_copy(update={"root": root}))


@pytest.fixture
def lake(tmp_path):
    tables = {"ads/by-clicks": "ads.clicks", "x/x-1/rows": "x-1", "ads/by-clicks_dead_letters": "ads.clicks",
              "ads/by-other": "ads.else", "ads/by-atest": "ads.atest", "x/far": "x-2"}  # fmt: skip
    return filled(str(tmp_path), tables)


@pytest.mark.parametrize("in_kafka", [[], ["ads.clicks"], ["ads.clicks", "x-1"]])
def test_every_table_of_a_rule_is_found_and_no_other(lake, in_kafka):
    assert {spec.topic: spec.table for spec in found_in(lake, kafka=in_kafka)} == {
        "ads.clicks": "ads/by-clicks", "x-1": "x/x-1/rows", "named": "one",
    }  # fmt: skip


def test_tables_of_another_group_are_not(lake):
    assert topics_of(lake, group="other") == ["named"]


def test_a_name_may_have_an_empty_part(tmp_path):
    lake = filled(str(tmp_path), {"sales": "orders", "sales-eu": "orders-eu"})
    found = found_in(lake, {"pattern": "orders(?P<where>-eu)?", "table": "sales{where}"})
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
    assert {*topics_of(lake)} == {"ads.clicks", "x-1", "named"}
    assert "x/x-9/rows" in caplog.text


@pytest.mark.parametrize("content", [b'{"version": 1e999}', b"[" * 100_000, b'"7"', b"\xff"])
def test_a_broken_note_of_the_last_checkpoint_is_none(lake, content):
    Path(lake.root, "x/x-1/rows/_delta_log/_last_checkpoint").write_bytes(content)
    assert "x-1" in topics_of(lake)


@pytest.mark.parametrize("folder", ["50%20off", "elsewhere"])
def test_a_folder_that_can_be_no_table_hides_no_other(tmp_path, caplog, folder):
    lake = filled(str(tmp_path / "lake"), {"orders": "orders"})
    (tmp_path / "lake/50%20off").mkdir()
    (tmp_path / "lake/elsewhere").symlink_to("/")
    assert topics_of(lake, ALL) == ["orders"]
    assert folder in caplog.text


@pytest.mark.parametrize(("table", "shape"), [("orders", "{topic}"), ("a/orders", "a/{topic}"), ("a/b", "{t}/{u}")])
def test_a_folder_that_may_not_be_read_hides_no_other(tmp_path, caplog, monkeypatch, table, shape):
    """As `lost+found`, where the lake's root is a disk of its own."""
    lake = filled(str(tmp_path), {table: table.replace("/", ".") if "{u}" in shape else "orders"})
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
    assert [spec.table for spec in found_in(lake, {"pattern": pattern, "table": shape})] == [table]
    assert "lost+found" in caplog.text


def test_a_gone_topic_beside_one_whose_name_differs_in_case_alone(tmp_path):
    lake = filled(str(tmp_path), {"Orders": "Orders", "orders": "orders"})
    found = [(spec.topic, spec.table) for spec in found_in(lake, ALL, kafka=["orders", "other"])]
    assert found == [("Orders", "Orders"), ("orders", "orders"), ("other", "other")]
    assert topics_of(lake, ALL, chosen=["Orders"]) == ["Orders"]
    with pytest.raises(ConfigError, match="collision"):
        found_in(lake, ALL, kafka=["orders", "Orders"])


def test_a_gone_topic_whose_dead_letters_table_has_become_another_topics(tmp_path, caplog):
    lake = filled(str(tmp_path), {"a": "a"})
    assert topics_of(lake, ALL, kafka=["a_dead_letters", "b"]) == ["a_dead_letters", "b"]
    assert "topics 'a_dead_letters' and 'a'" in caplog.text


def _refusing(monkeypatch, *tables):
    """The store answers nothing about the logs of these."""
    all_of = DiskLog._all

    def refused(self, *given):
        if any(f"/{table}/" in f"{self._folder}/" for table in tables):
            raise OSError(5, "Input/output error")
        return all_of(self, *given)

    monkeypatch.setattr(DiskLog, "_all", refused)


def test_a_table_that_is_refused_for_now_hides_no_other_and_is_told(lake, monkeypatch):
    _refusing(monkeypatch, "ads/by-clicks")
    unread = []
    assert topics_of(lake, unread=unread) == ["named", "x-1"]
    (left,) = unread
    assert (left.table, left.rule.pattern) == ("ads/by-clicks", RULES[1]["pattern"])
    assert "Input/output error" in str(left.error)
    with pytest.raises(TransientError, match="Input/output error"):
        found_in(lake)
    with pytest.raises(TransientError, match="Input/output error"):  # it may be the one that was chosen
        found_in(lake, chosen=["ads.clicks"], unread=[])
    assert topics_of(lake, chosen=["x-1"], unread=[]) == ["x-1"]


def test_where_no_table_is_read_it_is_the_store(lake, monkeypatch):
    _refusing(monkeypatch, "ads", "x")
    with pytest.raises(TransientError, match="Input/output error"):
        found_in(lake, unread=[])
