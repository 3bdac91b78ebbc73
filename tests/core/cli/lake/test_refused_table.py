"""A table that the store refuses for a moment: each command looks after the others, names that one, and ends by 1."""

import json

import pytest

from kgs_core.catalog import registration
from kgs_core.catalog.catalog import Registration
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.delta import pace
from kgs_core.lake.delta.log_store import DiskLog
from tests.kgs_yaml import LONGS
from tests.sink import Sink, Storage

LATEST = {"table": "gold/{topic}", "key": ["n"], "deletes": "ignore"}
RULE = {"pattern": "x-.*", "table": "rows/{topic}", **LONGS, "newest_rows": LATEST}
CATALOG = {"kind": "unity", "url": "http://127.0.0.1:9", "name": "main.{folder}.{last}"}
WHY = "table rows/x-2: "


class Catalogue:
    def register(self, entry):
        return Registration.CREATED

    def close(self):
        pass


@pytest.fixture
def run(tmp_path, configured, monkeypatch):
    """Runs a command on a lake with the tables of three topics that Kafka no longer has; one of them is refused."""
    root = tmp_path / "lake"
    for n in (1, 2, 3):
        Sink(Storage(str(root)), topic=f"x-{n}", table=f"rows/x-{n}").started(1).ingest({0: (0, 20)})
    kgs = configured(topics=[RULE], catalog=CATALOG)
    all_of = DiskLog._all

    def refused(self, *given):
        if str(self._folder).rstrip("/").endswith("rows/x-2/_delta_log"):
            raise OSError(5, "Input/output error")
        return all_of(self, *given)

    monkeypatch.setattr(DiskLog, "_all", refused)
    monkeypatch.setattr(pace.time, "sleep", lambda _: None)
    monkeypatch.setattr(KafkaAdmin, "list_topics", lambda _: [])
    monkeypatch.setattr(registration, "open_catalog", lambda *_: Catalogue())

    def call(*arguments):
        done = kgs(*arguments)
        return done.exit_code, done.stdout.splitlines(), done.stderr

    return call


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("maintain", ["rows/x-1", "rows/x-1_dead_letters", "rows/x-3", "rows/x-3_dead_letters"]),
        ("materialize", ["gold/x-1", "gold/x-3", "rows/x-2"]),
        ("register", ["rows/x-1", "rows/x-1_dead_letters", "rows/x-3", "rows/x-3_dead_letters"]),
    ],
)
def test_the_others_are_looked_after(run, command, names):
    status, lines, errors = run(command)
    assert (status, sorted(line.split(":")[0] for line in lines)) == (1, names)
    assert errors.count(WHY) >= 1
    assert "Input/output error" in errors
    assert run(command, *(["--table"] if command == "maintain" else []), names[0])[0] == 0, "others were not asked for"
    status, _, errors = run(command, *(["--table"] if command == "maintain" else []), "rows/x-2")
    assert (status, "Input/output error" in errors) == (1, True), "not that there is no such table"


def test_the_audit_has_a_line_for_it(run):
    status, lines, _ = run("audit", "--no-log")
    assert status == 1
    assert [line.split()[0] + " " + line.split()[-1] for line in lines[1:] if line.startswith("rows")] == [
        "rows/x-1 ok",
        "rows/x-3 ok",
        "rows/x-2 READ",
    ]
    found = json.loads("\n".join(run("audit", "--no-log", "--json")[1]))
    assert [(table["table"], table["topic"]) for table in found["tables"] if not table["ok"]] == [("rows/x-2", "")]


def test_letters_of_another_table_are_redriven(run):
    status, lines, _ = run("redrive", "rows/x-1")
    assert (status, lines[0].split(":")[0]) == (0, "table rows/x-1")
    for table in ("rows/x-2", "rows/x-9"):
        status, _, errors = run("redrive", table)
        assert (status, "Input/output error" in errors) == (1, True)
