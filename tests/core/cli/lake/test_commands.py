"""`kgs maintain` of a lake that has no table, `kgs accept-topic` of several topics."""

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.lake.topics import recovery
from kgs_core.lake.topics.recovery import NewStart
from kgs_core.model import TopicId
from tests.mock_kafka import mock_kafka
from tests.sink import Sink, Storage

TOPICS = [{"topic": "t", "table": "t"}, {"pattern": "x-.*", "table": "{topic}"}]


@pytest.fixture
def maintain(configured):
    with mock_kafka() as kafka:
        kafka.topic("x-1")
        kgs = configured(kafka={"bootstrap_servers": kafka.bootstrap}, topics=TOPICS)

        def run(*arguments):
            done = kgs("maintain", *arguments)
            return done.exit_code, done.output.splitlines()

        yield run


@pytest.mark.parametrize("is_there", [False, True])
def test_before_the_first_start_there_is_nothing_to_do_and_nothing_is_made(tmp_path, maintain, is_there):
    if is_there:
        (tmp_path / "lake").mkdir()
    said = [f"lake {tmp_path / 'lake'}: nothing yet to maintain: it has none of these tables"]
    assert maintain() == (0, said)
    assert maintain("--table", "t", "--dry-run") == (0, said)
    assert maintain("--json") == (0, [])
    assert (tmp_path / "lake").exists() == is_there
    assert maintain("--table", "y") == (
        2,
        ["error: table y: no topic fills it: see 'topics' in the configuration"],
    )


def test_a_root_that_is_a_link_to_nowhere_is_said(tmp_path, maintain):
    """As a disk that is not mounted: its tables are not gone."""
    (tmp_path / "lake").symlink_to(tmp_path / "disk")
    status, lines = maintain()
    assert status == 1
    assert lines == [f"error: lake {tmp_path / 'lake'}: No such file or directory: fix path or rights"]


def test_a_table_that_is_there_has_a_line_and_the_others_have_none(tmp_path, maintain):
    Sink(Storage(str(tmp_path / "lake"))).started(1).ingest({0: (0, 20)})
    status, lines = maintain()
    assert (status, [line.split(":")[0] for line in lines]) == (0, ["t", "t_dead_letters"])


def test_a_topic_that_was_accepted_before_holds_up_no_other_one(configured, monkeypatch):
    """As where the command is given again after it was cut short."""

    class Acceptance:
        def __init__(self, settings):
            pass

        def accept_topic(self, topic):
            if topic == "a":
                raise UnsafeError("topic a: filled already")
            return NewStart(topic, (), TopicId("id"), {0: 0})

    monkeypatch.setattr(recovery, "Acceptance", Acceptance)
    done = configured(topics=TOPICS)("accept-topic", "a", "b", "--yes")
    assert done.exit_code == 3
    assert done.stdout.startswith("table b: rebuilt")
    assert done.stderr == "error: topic a: filled already\n"
