"""`kgs adopt` on a real broker, whose topic ids no other thing gives: what people see, and what the audit says."""

import pytest
from click.testing import CliRunner

from kgs_core.cli.lake.adopt import adopt
from kgs_core.cli.main import KgsGroup
from kgs_core.config.file import load_settings
from kgs_core.errors import UnsafeError
from kgs_core.lake.audit.audit import audit_lake
from tests.system.small_sink import BAD, GOOD, SmallSink, send
from tests.topics import delete_topic


@pytest.fixture
def run(config):
    """Runs the command, errors and all."""
    kgs = KgsGroup(commands={"adopt": adopt})
    return lambda *arguments: CliRunner().invoke(kgs, ["adopt", *arguments, "--config", str(config)])


@pytest.fixture
def topic(topic_prefix):
    return f"{topic_prefix}a"


@pytest.fixture
def sink(kafka, admin, config, topic):
    """Three rows and a dead letter of partition 0; partition 1 is empty."""
    admin.create_topic(topic, 2)
    send(kafka, topic, *[GOOD] * 3, BAD)
    sink = SmallSink(load_settings(config, {}), topic)
    sink.ingest()
    return sink


def test_renamed_group(run, kafka, config, sink, topic):
    config.write_text(config.read_text().replace("group: audited", "group: renamed"))
    settings = load_settings(config, {})
    with pytest.raises(UnsafeError, match="kgs adopt --from-group audited"):
        SmallSink(settings, topic)
    shown = run("--from-group", "audited")
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines() == [
        f"table bronze/{topic}_dead_letters: {topic}, positions: 2: would be group renamed's, no longer audited's",
        f"table bronze/{topic}: {topic}, positions: 2: would be group renamed's, no longer audited's",
        "nothing was recorded: give --yes to do it",
    ]
    done = run("--from-group", "audited", "--yes")
    assert done.exit_code == 0, done.output
    assert "now group renamed's, no longer audited's" in done.output
    assert "has handed over all its tables already" in run("--from-group", "audited", "--yes").output
    send(kafka, topic, *[GOOD] * 2)
    SmallSink(settings, topic).ingest()
    audit = audit_lake(settings, with_log=True)
    assert audit.ok, audit
    assert [table.rows for table in audit.tables] == [5]
    with pytest.raises(UnsafeError, match="has handed over its positions"):
        SmallSink(sink.settings, topic).ingest()


def test_topic_that_moved_goes_on_where_it_was(run, kafka, admin, sink, topic):
    """The topic under a new id: to the lake it makes no difference whether that is in the same cluster."""
    delete_topic(admin, topic)
    admin.create_topic(topic, 2)
    send(kafka, topic, *[GOOD] * 3)
    early = run("--topic", topic, "--keep-offsets", "--yes")
    assert early.exit_code == 3
    assert f"{topic}:0: offset 4 is not in its log, which has 0 to 2" in early.stderr
    send(kafka, topic, *[GOOD] * 4)
    shown = run("--topic", topic, "--keep-offsets")
    assert shown.exit_code == 0, shown.output
    assert f"{topic}:0 ended at 4, begins at 4; 0 to 3 of the new log are not read" in shown.output
    assert f"{topic}:1 ended at 0, begins at 0\n" in shown.output
    assert shown.output.endswith("nothing was recorded: give --yes to do it\n")
    assert run("--topic", topic, "--keep-offsets", "--yes").exit_code == 0
    SmallSink(sink.settings, topic).ingest()
    audit = audit_lake(sink.settings, with_log=True)
    assert audit.ok, audit
    assert [table.rows for table in audit.tables] == [6]
    again = run("--topic", topic, "--keep-offsets", "--yes")
    assert again.exit_code == 3
    assert "is filled from this topic" in again.stderr


def test_offsets_from_a_file(run, kafka, admin, sink, topic, tmp_path):
    delete_topic(admin, topic)
    admin.create_topic(topic, 2)
    send(kafka, topic, *[GOOD] * 3)
    file = tmp_path / "offsets"
    file.write_text(f"{topic}:0=1\n{topic}:1=0\n")
    done = run("--topic", topic, "--offsets", str(file), "--yes")
    assert done.exit_code == 0, done.output
    SmallSink(sink.settings, topic).ingest()
    audit = audit_lake(sink.settings, with_log=True)
    assert audit.ok, audit
    assert [table.rows for table in audit.tables] == [5]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "give --from-group OLD; or --topic T with"),
        (("--from-group", "x", "--keep-offsets"), "give --from-group OLD; or --topic T with"),
        (("--keep-offsets",), "which topic has moved?"),
        (("--topic", "a", "--offset", "a:0"), "'a:0': write TOPIC:PARTITION=OFFSET"),
        (("--topic", "a", "--offset", "b:0=1"), "also give --topic b"),
    ],
)
def test_what_is_meant_must_be_given(run, arguments, problem):
    result = run(*arguments, "--yes")
    assert result.exit_code == 2
    assert problem in result.stderr
