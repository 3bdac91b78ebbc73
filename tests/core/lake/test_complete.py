"""How far tables are complete, from positions in a lake and a Kafka of dictionaries: what makes it unknown."""

from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from kgs_core.errors import TransientError
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.complete import CompleteView
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_core.model import TopicPartition
from tests.kgs_yaml import kgs_yaml

ASKED_MS = 1_700_000_000_000
VIEW = TableView("a", "t", version=1, positions={0: 5, 1: 7}, topic_id="i", partitions=2)
READ = {TopicPartition("a", 0): 5, TopicPartition("a", 1): 7}


class Kafka:
    """Logs and ids of topics; `deleting`: where logs begin once records were asked for."""

    def __init__(self, ends, firsts=None, ids=None, deleting=None, stamps=None):
        self.ends, self.firsts, self.ids = ends, firsts or dict.fromkeys(ends, 0), {"a": "i"} if ids is None else ids
        self.deleting, self.stamps, self.empty_to = deleting or {}, stamps or {}, {}

    def each_offset(self, tps, which):
        return {tp: (self.ends if which == "latest" else self.firsts)[tp] for tp in tps}

    def topic_ids(self, topics):
        return {topic: self.ids.get(topic) for topic in topics}

    def at(self, positions, timeout_s):
        self.firsts = self.firsts | self.deleting
        return {tp: self.stamps[tp] for tp in positions if tp in self.stamps}

    def close(self):
        pass


def settings_of(*more, root="lake", **of_a):
    return kgs_yaml(root, {"topic": "a", "table": "t", **of_a}, *more)


def judged(kafka, *views):
    with CompleteView(settings_of()) as view:
        view._admin = view._times = kafka
        (found,) = view.judged(LakeSnapshot(views, ()), ASKED_MS)
    return found


def test_what_is_read_is_complete_until_it_was_asked():
    assert judged(Kafka(READ), VIEW).until_ms == ASKED_MS - 60_000


@pytest.mark.parametrize(
    "view", [replace(VIEW, topic_id=None, partitions=0, positions={}), replace(VIEW, version=None)]
)
def test_a_topic_that_kafka_does_not_describe_makes_nothing_complete(view):
    assert judged(Kafka(READ, ids={} if view.topic_id is None else None), view).until_ms is None


SIDE = TableView("a", "side", version=1)


def test_a_side_table_is_as_complete_as_all_topics_that_fill_it():
    """One of them asks for no hours, and is behind."""
    b0 = TopicPartition("b", 0)
    other = TableView("b", "b", version=1, positions={0: 0}, topic_id="j", partitions=1, sides=(SIDE,))
    kafka = Kafka({**READ, b0: 1}, ids={"a": "i", "b": "j"}, stamps={b0: ASKED_MS - 90_000})
    settings = settings_of({"topic": "b", "table": "b"}, complete_hours={"since": "2026-11-01"})
    for side, until_ms in ((SIDE, ASKED_MS - 150_000), (replace(SIDE, version=None), None)):
        with CompleteView(settings, asked_for=True) as view:
            view._admin = view._times = kafka
            views = replace(VIEW, sides=(side,)), replace(other, sides=(side,))
            found = view.judged(LakeSnapshot(views, ()), ASKED_MS)
        assert [(each.table, each.until_ms) for each in found] == [("side", until_ms), ("t", ASKED_MS - 60_000)]


def test_records_that_are_deleted_between_the_questions_are_not_passed_over():
    p0 = TopicPartition("a", 0)
    kafka = Kafka({**READ, p0: 9}, deleting={p0: 8}, stamps={p0: ASKED_MS - 5})
    assert "offsets 5 to 7 were deleted" in judged(kafka, VIEW).problem


def test_of_a_partition_that_was_added_all_records_count_also_those_that_are_deleted():
    p1 = TopicPartition("a", 1)
    kafka = Kafka(READ, firsts={TopicPartition("a", 0): 0, p1: 7})
    assert "offsets 0 to 6 were deleted" in judged(kafka, replace(VIEW, positions={0: 5, 1: None})).problem


def test_of_a_topic_that_was_made_again_nothing_is_complete_before_it_has_begun(tmp_path):
    """What was unread of its former life is in no log."""
    settings = settings_of(root=tmp_path)
    empty, begun = Kafka(dict.fromkeys(READ, 0)), replace(VIEW, positions={0: 0, 1: 0})
    made = replace(VIEW, positions={0: None, 1: None})
    with CompleteView(settings) as view:
        view._admin = view._times = empty
        for life, expected in (("i", ""), ("former", "topic a: made again")):
            app = Transaction(AppIds(settings.group, "a", life).position(0), 5)
            write_deltalake(
                tmp_path / "t",
                pa.table({"n": [1]}),
                mode="append",
                commit_properties=CommitProperties(app_transactions=[app]),
            )
            (found,) = view.judged(LakeSnapshot((made,), ()), ASKED_MS)
            assert found.problem.startswith(expected)
            assert (found.until_ms is None) == bool(expected)
        (found,) = view.judged(LakeSnapshot((begun,), ()), ASKED_MS)
        assert found.until_ms is not None


@pytest.mark.parametrize("which", ["latest", "earliest"])
def test_while_kafka_does_not_answer_nothing_is_known_and_nothing_raised(which, monkeypatch):
    def each_offset(_self, tps, asked):
        if asked == which:
            raise TransientError("Kafka is away")
        return dict(READ)

    monkeypatch.setattr(Kafka, "each_offset", each_offset)
    assert judged(Kafka(READ), VIEW).problem == "Kafka is away"
