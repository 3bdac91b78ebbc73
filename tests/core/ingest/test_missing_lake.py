"""Topics whose tables are missing though the group has read them; real tables in a folder, Kafka from memory."""

import os

import pytest

from kgs_core.errors import TransientError
from kgs_core.lake.rule.first_start import GroupOffset
from kgs_core.model import TopicId, TopicPartition
from tests.core.ingest.test_owned_topics import MemoryKafka, consumer, share


@pytest.fixture
def kafka():
    return MemoryKafka("t1", "t2")


@pytest.mark.parametrize("is_running", [False, True])
def test_a_lake_that_was_moved_is_no_first_start_and_is_read_on_when_it_is_back(kafka, tmp_path, is_running):
    """Read again, its records would be in two lakes; with `start: latest` those since the last start would be lost."""
    lake, moved = tmp_path / "lake", tmp_path / "moved"
    topics = consumer(kafka, lake)
    topics.refresh({"t1"}, share(t1=[0, 1]))
    lake.rename(moved)
    topics = topics if is_running else consumer(kafka, lake)
    topics.refresh({"t1", "t2"}, share(t1=[0, 1, 2], t2=[0]))
    assert topics.problems.keys() == {"t1"}
    assert "bring" in topics.problems["t1"]
    if not is_running:
        assert topics.problems["t1"] == (
            "table t1: not there, or without positions of topic t1, though group g has read t1:0 up to 0, t1:1 up to 0 "
            "(its offsets in Kafka): bring the lake back, or start over: kgs accept-topic t1 --yes"
        )
    assert os.listdir(lake) == ["t2"], "a topic that was not read before begins"
    (moved / "t1").rename(lake / "t1")
    topics.refresh({"t1"}, share(t1=[0, 1]))
    assert (topics.problems, topics.states["t1"].progress.positions) == ({}, {0: 0, 1: 0})


def test_a_table_that_another_topic_of_it_made_anew_is_missing_too(kafka, tmp_path):
    consumer(kafka, tmp_path).refresh({"t1"}, share(t1=[0]))
    (tmp_path / "t1").rename(tmp_path / "t2")
    kafka.group.report(TopicId("id-t2"), "t2", {TopicPartition("t2", 0): 7})
    topics = consumer(kafka, tmp_path)
    topics.refresh({"t2"}, share(t2=[0]))
    assert "group g has read t2:0 up to 7" in topics.problems["t2"]


def test_another_consumer_that_begins_the_topic_meanwhile_is_no_missing_lake(kafka, tmp_path, monkeypatch):
    def begun_meanwhile(_):
        monkeypatch.undo()
        consumer(kafka, tmp_path).refresh({"t1"}, share(t1=[0]))
        return {TopicPartition("t1", 0): GroupOffset(7, TopicId("id-t1"), "t1")}

    monkeypatch.setattr(kafka.group, "committed", begun_meanwhile)
    topics = consumer(kafka, tmp_path)
    topics.refresh({"t1"}, share(t1=[1]))
    assert (topics.problems, list(topics.states)) == ({}, ["t1"])


def test_without_the_offsets_of_the_group_no_topic_begins(kafka, tmp_path, monkeypatch):
    def refuse(_):
        raise TransientError("not the coordinator")

    monkeypatch.setattr(kafka.group, "committed", refuse)
    topics = consumer(kafka, tmp_path / "lake")
    topics.refresh({"t1"}, share(t1=[0]))
    assert topics.problems == {"t1": "not the coordinator"}
    assert not (tmp_path / "lake").exists()
