"""All tables of a lake into a catalogue: which, under which names, and that one that fails harms no other."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgs_core.catalog import registration
from kgs_core.catalog.locations import location_of, same_place
from kgs_core.cli.main import cli
from kgs_core.config import catalog as catalog_settings
from kgs_core.config import parse_settings
from kgs_core.errors import ConfigError
from tests.sink import Sink, Storage
from tests.unity_server import UnityServer, hang

TEXT = """
group: g
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}}}
topics:
  - {{topic: t, table: t, format: json, schema: {{n: long}}, newest_rows: {{table: gold/t}}}}
  - {{topic: later, table: later}}
  - {{pattern: "u.*", table: "other/{{topic}}"}}
catalog: {{kind: unity, url: "{url}", name: "{name}"}}
"""


@pytest.fixture(autouse=True)
def first(monkeypatch):
    """Where a run begins: nothing is left to chance."""
    monkeypatch.setattr(registration, "randrange", lambda _: 0)


@pytest.fixture
def server():
    with UnityServer() as server:
        yield server


@pytest.fixture
def root(tmp_path):
    """A lake with a table, its dead letters, and nothing of the other topics."""
    root = tmp_path / "the lake"
    Sink(Storage(str(root))).started(1).ingest({0: (0, 20)})
    return root


def start(root, table):
    """The table of the topic that its last part names, without rows."""
    Sink(Storage(str(root)), topic=table.rpartition("/")[2], table=table).started(1)


@pytest.fixture
def run(server, root, tmp_path):
    def run(*arguments, name="main.{group}.{table}"):
        config = tmp_path / "kgs.yaml"
        config.write_text(TEXT.format(root=json.dumps(str(root)), url=server.url, name=name))
        done = CliRunner().invoke(cli, ["register", *arguments, "--config", str(config)])
        return done.exit_code, done.output.splitlines()

    return run


def test_tables_that_are_there_are_registered_once_and_kafka_is_not_asked(server, root, run):
    first = ["t: created as main.g.t", "t_dead_letters: created as main.g.t_dead_letters"]
    assert run() == (0, first)
    assert run() == (0, [line.replace("created", "unchanged") for line in first])
    assert server.tables["main.g.t"]["storage_location"] == f"file://{root}/t".replace(" ", "%20")
    columns = [column["name"] for column in server.tables["main.g.t"]["columns"]]
    assert {"n", "_topic_id", "_offset"} <= set(columns)
    assert run("t", "--json") == (
        0,
        ['{"table": "t", "name": "main.g.t", "outcome": "unchanged", "problem": "", "is_answered": true}'],
    )
    assert run("x") == (2, ["error: table x: no topic fills it: see 'topics' in the configuration"])


def test_one_that_is_refused_or_broken_harms_no_other(server, root, run):
    server.tables["main.g.t"] = {"storage_location": "s3://elsewhere/t", "data_source_format": "DELTA"}
    Path(root, "later", "_delta_log").mkdir(parents=True)
    Path(root, "later", "_delta_log", "0" * 20 + ".json").write_text("no log")
    status, lines = run()
    assert status == 1
    assert lines[0] == "t_dead_letters: created as main.g.t_dead_letters"
    assert lines[1].startswith("error: table later: its log cannot be read: ")
    assert "\ntable t: main.g.t is another table there, at s3://elsewhere/t" in "\n".join(lines)


def test_two_tables_of_one_name_are_both_refused(server, root, run):
    status, lines = run(name="main.g.{folder}_{last}")
    assert (status, server.tables.keys()) == (0, {"main.g._t", "main.g._t_dead_letters"})
    server.tables.clear()
    for path in ("other/u.a", "other/u-a"):
        start(root, path)
    status, lines = run(name="main.g.{table}")
    assert status == 1
    assert server.tables.keys() == {"main.g.t", "main.g.t_dead_letters"}
    assert "would be called main.g.other_u_a there, as others would (other/u-a, other/u.a)" in "".join(lines)


def test_a_catalogue_that_hangs_is_asked_twice_and_not_for_each_table(server, root, run, monkeypatch):
    monkeypatch.setattr(catalog_settings.CatalogSettings, "timeout_s", 0.3)
    for table in ("later", "other/u1"):
        start(root, table)
    server.before = hang(1.5)
    status, lines = run()
    assert status == 1
    assert len(server.asked) == 2
    text = "\n".join(lines)
    assert (text.count("does not answer"), text.count("not asked for, since")) == (4, 2)
    server.before = lambda *_: None
    assert run()[0] == 0


def test_two_that_never_get_an_answer_do_not_hide_the_others_for_ever(server, root, run, monkeypatch):
    for table in ("later", "other/u1"):
        start(root, table)
    server.before = lambda _, path: (503, {}) if path.endswith((".later", ".other_u1")) else None
    assert run()[0] == 1
    assert not server.tables
    begins = iter(range(1, 100))
    monkeypatch.setattr(registration, "randrange", lambda _: next(begins))
    for _ in range(5):
        assert run()[0] == 1
    assert server.tables.keys() == {"main.g.t", "main.g.t_dead_letters"}


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("main.{table}", "unity", "a table of kind 'unity' is called catalog.schema.table"),
        ("a.b.{table}", "glue", "a table of kind 'glue' is called database.table"),
        ("main.g.x", "unity", "needs {table}, or {last}"),
        ("main.{topic}.{table}", "unity", "{topic} is not known"),
        ("main..{table}", "unity", "none empty"),
        ("main.a-b.{table}", "unity", "letters, digits"),
        ("main.g.{table}", "hive", "give one of 'unity' or 'glue'"),
    ],
)
def test_names_that_cannot_be_are_refused_at_start(name, kind, problem):
    text = TEXT.format(root="/l", url="http://x", name=name).replace("unity", kind)
    with pytest.raises(ConfigError, match=problem.replace("{", r"\{")):
        parse_settings(text.encode(), "kgs.yaml", {})


def test_a_table_is_called_by_its_path_in_lower_case():
    text = TEXT.format(root="/l", url="http://x", name="Main.{folder}.{group}_{last}")
    catalog = parse_settings(text.encode(), "kgs.yaml", {}).catalog
    assert catalog.name_of("My-Group", "a/b/Orders.v1") == "main.a_b.my_group_orders_v1"
    with pytest.raises(ValueError, match="lies in no folder"):
        catalog.name_of("g", "orders")
    with pytest.raises(ValueError, match="more than 255 characters"):
        catalog.name_of("g", "a/" + "x" * 255)


def test_a_place_is_one_place_in_each_form():
    forms = ["/a b/t", "file:/a%20b/t", "file:///a%20b/t/", "file:///a b//t", "FILE:///a b/t"]
    assert all(same_place(one, other) for one in forms for other in forms)
    assert same_place("s3://b/t/", "s3a://b/t")
    assert location_of("/a b", "t") == "file:///a%20b/t"
    for other in ("s3://b/T", "s3://c/t", "gs://b/t", "/b/t", None, ""):
        assert not same_place("s3://b/t", other)
