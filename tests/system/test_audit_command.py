"""`kgs audit`, the command: what people see, what programs get, exit status."""

import json

import pytest
from click.testing import CliRunner

from kgs_core.cli.lake.audit import audit
from kgs_core.cli.main import KgsGroup
from kgs_core.config.file import load_settings
from tests.system.small_sink import BAD, GOOD, SmallSink, send


@pytest.fixture
def run(config):
    """Runs the command, errors and all."""
    kgs = KgsGroup(commands={"audit": audit})
    return lambda *options: CliRunner().invoke(kgs, ["audit", "--config", str(config), *options])


@pytest.fixture
def sink(kafka, admin, config, topic_prefix):
    """A sink that has read four rows and a dead letter of the topic `a`; topic `b` has no table."""
    topic = f"{topic_prefix}a"
    admin.create_topic(topic, 2)
    admin.create_topic(f"{topic_prefix}b", 1)
    send(kafka, topic, *[GOOD] * 4, BAD)
    sink = SmallSink(load_settings(config, {}), topic)
    sink.ingest()
    return sink


def test_table_for_people(run, sink, topic_prefix):
    right = run()
    assert right.exit_code == 0, right.output
    assert [line.split() for line in right.stdout.splitlines()] == [
        ["table", "rows", "dead", "letters", "unread", "lost", "doubled", "ahead", "foreign", "deleted", "unread"],
        [f"bronze/{topic_prefix}a", "4", "1", "0", "0", "0", "0", "0", "0", "ok"],
        [f"bronze/{topic_prefix}b", "0", "0", "?", "0", "0", "0", "0", "0", "-"],
        ["no", "table", "yet"],
    ]
    sink.add([sink.file_of(0, 7)])
    wrong = run("--topic", sink.topic)
    assert wrong.exit_code == 1
    assert f"  {sink.topic}:0: doubled 1: 0 (rows)" in wrong.stdout.splitlines()
    assert f"  {sink.topic}:0: ahead 1: 7 (rows at or above the position 5)" in wrong.stdout.splitlines()
    assert "find it in the table's history" in wrong.stdout


@pytest.mark.parametrize("options", [(), ("--no-log",)])
def test_json_for_programs(run, sink, options):
    sink.add([sink.file_of(0, 7)])
    result = run("--json", "--topic", sink.topic, *options)
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    [table] = found["tables"]
    totals = ("table", "topic", "rows", "dead_letters", "lost", "doubled", "ahead", "foreign")
    assert found["ok"] is False
    assert [table[key] for key in totals] == [sink.spec.table, sink.topic, 6, 1, 0, 1, 1, 0]
    assert [(p["partition"], p["position"], p["rows"], p["doubled"], p["ok"]) for p in table["partitions"]] == [
        (0, 5, 6, 1, False),
        (1, 0, 0, 0, True),
    ]


def test_wrong_name_is_a_usage_error(run):
    result = run("--topic", "something.else")
    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        ["error: --topic something.else: no rule in 'topics' fits it: check the name"],
    )
