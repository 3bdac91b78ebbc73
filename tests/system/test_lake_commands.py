"""`kgs maintain`, `kgs accept-loss`, `kgs accept-topic`: what people see, what the lake holds, exit status."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgs_core.cli.lake.commands import accept_loss, accept_topic, maintain
from kgs_core.cli.main import KgsGroup
from kgs_core.config.file import load_settings
from kgs_core.errors import UnsafeError
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.kafka.client_config import reading_client
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.topics.factory import open_lake
from kgs_core.lake.topics.maintenance import maintenance_lock
from kgs_core.model import TopicPartition
from tests.system.small_sink import BAD, GOOD, SmallSink, send
from tests.topics import delete_records, delete_topic


@pytest.fixture
def run(config):
    """Runs a command, errors and all."""
    kgs = KgsGroup(commands={command.name: command for command in (maintain, accept_loss, accept_topic)})
    return lambda *arguments: CliRunner().invoke(kgs, [*arguments, "--config", str(config)])


@pytest.fixture
def topic(topic_prefix):
    return f"{topic_prefix}a"


@pytest.fixture
def sink(kafka, admin, config, topic):
    """Two commits: six rows and two dead letters of partition 0; partition 1 is empty."""
    admin.create_topic(topic, 2)
    for _ in range(2):
        send(kafka, topic, *[GOOD] * 3, BAD)
        sink = SmallSink(load_settings(config, {}), topic)
        sink.ingest()
    return sink


def stored(sink):
    return load_transactions(sink.storage, sink.spec.table)


def test_maintain_says_what_it_did_to_each_table(run, sink, topic):
    result = run("maintain")
    assert result.exit_code == 0, result.output
    rows, dead_letters = result.output.splitlines()
    assert rows.startswith(f"bronze/{topic}: 2 -> 1 files, 0.0 -> 0.0 MB, removed 0 old files (0.0 MB), ")
    assert dead_letters.startswith(f"bronze/{topic}_dead_letters: 2 -> 1 files")


def test_maintain_for_programs_and_one_table_only(run, sink, topic):
    result = run("maintain", "--json", "--dry-run", "--table", f"bronze/{topic}")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["table"], found["files"], found["removed"]) == (f"bronze/{topic}", [2, 2], 0)


def test_maintain_refuses_a_table_that_is_not_its_own(run, sink):
    result = run("maintain", "--table", "elsewhere")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: table elsewhere: no topic fills it")


def test_maintain_beside_another_refuses_to_start(run, sink):
    with maintenance_lock(sink.storage):
        result = run("maintain")
    assert result.exit_code == 1
    assert "another maintenance is running" in result.stderr


def test_maintain_says_that_kafka_is_away(run, config, sink):
    config.write_text(config.read_text().replace(sink.settings.kafka.bootstrap_servers, "127.0.0.1:9"))
    result = run("maintain")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Kafka 127.0.0.1:9: list topics: ")


@pytest.mark.parametrize(
    "loss", ["a", "a:0", "a:0=1", "a:0=5-5", "a:0=5-4", "a:x=1-2", "a:0=1-99999999999999999999", "a:0=-1-2", ":0=1-2"]
)
def test_accept_loss_wants_a_range(run, loss):
    result = run("accept-loss", loss, "--yes")
    assert result.exit_code == 2
    assert "error: accept-loss: " in result.stderr


def test_loss_is_recorded_once_and_the_audit_knows_it(run, kafka, admin, sink, topic):
    tp = TopicPartition(topic, 0)
    send(kafka, topic, *[GOOD] * 6)
    delete_records(admin, {tp: 11})
    before = stored(sink)
    for arguments, problem in [
        ((f"{topic}:0=8-11",), "give --yes"),
        ((f"{topic}:0=7-11", "--yes"), "stands at 8, not at 7: nothing was recorded"),
        ((f"{topic}:0=8-12", "--yes"), "offsets 11 to 11 are still in the log: accept 8-11 at most"),
        ((f"{topic}:0=8-15", "--yes"), "the log ends at 14"),
    ]:
        result = run("accept-loss", *arguments)
        assert result.exit_code == 3, result.output
        assert problem in result.stderr
        assert stored(sink) == before
    result = run("accept-loss", f"{topic}:0=8-11", "--yes")
    assert result.exit_code == 0, result.output
    assert f"{topic}:0 continues at 11; recorded: 3 offsets, 8 to 10, are not in it" in result.output
    assert run("accept-loss", f"{topic}:0=8-11", "--yes").exit_code == 3
    assert stored(sink)[sink.ids.gap(0, 8)] == 11
    sink.ingest()
    assert stored(sink)[sink.ids.position(0)] == 14
    audit = audit_lake(sink.settings, with_log=True)
    assert audit.ok, audit


def test_readable_records_are_given_up_only_when_that_is_asked_for(run, kafka, sink, topic):
    send(kafka, topic, *[GOOD] * 2)
    refused = run("accept-loss", f"{topic}:0=8-9", "--yes")
    assert refused.exit_code == 3
    assert "offsets 8 to 8 are still in the log: give --even-if-readable" in refused.stderr
    assert run("accept-loss", f"{topic}:0=8-9", "--yes", "--even-if-readable").exit_code == 0
    assert stored(sink)[sink.ids.position(0)] == 9


@pytest.mark.parametrize(("loss", "problem"), [("{}:7=0-1", "partitions 0 to 1"), ("{}x:0=0-1", "no such topic")])
def test_loss_of_what_kafka_does_not_have_is_a_mistake(run, sink, topic, loss, problem):
    result = run("accept-loss", loss.format(topic), "--yes")
    assert result.exit_code == 2
    assert problem in result.stderr


def test_topic_that_was_made_again_goes_on_in_the_same_table(run, kafka, admin, sink, topic):
    early = run("accept-topic", topic, "--yes")
    assert early.exit_code == 3
    assert "is filled from this topic" in early.stderr
    delete_topic(admin, topic)
    admin.create_topic(topic, 3)
    send(kafka, topic, *[GOOD] * 5)
    assert run("accept-topic", topic).exit_code == 3
    result = run("accept-topic", topic, "--yes")
    assert result.exit_code == 0, result.output
    assert f"(before: {sink.ids.topic_id}), first offset of each partition: 0: 0, 1: 0, 2: 0" in result.output
    assert run("accept-topic", topic, "--yes").exit_code == 3
    again = SmallSink(sink.settings, topic)
    again.ingest()
    assert stored(again)[again.ids.position(0)] == 5
    assert stored(again)[sink.ids.position(0)] == 8
    audit = audit_lake(sink.settings, with_log=True)
    assert audit.ok, audit


def test_topic_that_was_never_read_needs_no_acceptance(run, admin, sink, topic_prefix):
    admin.create_topic(f"{topic_prefix}new", 1)
    result = run("accept-topic", f"{topic_prefix}new", "--yes")
    assert result.exit_code == 3
    assert "start a consumer" in result.stderr


def test_a_table_that_is_missing_begins_anew_only_where_somebody_says_so(run, admin, sink, topic):
    """As consumers open a topic; by metadata what they commit is told from what others commit."""
    settings, ids = sink.settings, sink.ids

    def opened():
        with closing(GroupOffsets(reading_client(settings), settings.group)) as offsets:
            opener = TopicOpener(settings, open_lake(settings.lake), admin, offsets, None)
            table = opener.open(sink.spec, ids.topic_id, 2)
            opener.note_positions(table, table.positions({0, 1}).next_offset)

    opened()
    shutil.rmtree(settings.lake.root)
    with pytest.raises(UnsafeError, match=f"has read {topic}:0 up to 8, {topic}:1 up to 0 "):
        opened()
    (audited,) = audit_lake(settings, topics=[topic]).tables
    assert "bring the lake back" in audited.problem
    assert not Path(settings.lake.root).exists()
    result = run("accept-topic", topic, "--yes")
    assert result.exit_code == 0, result.output
    assert "rebuilt when a consumer opens topic" in result.output
    assert run("accept-topic", topic, "--yes").exit_code == 3
    opened()
    again = SmallSink(settings, topic)
    again.ingest()
    assert stored(again)[ids.position(0)] == 8
    assert audit_lake(settings, topics=[topic]).ok
