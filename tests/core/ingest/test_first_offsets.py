"""Where reading begins, per `start`: what is asked of Kafka, and what comes of its answer.

What the broker makes of an open transaction is in tests/system/test_start_positions.py.
"""

from types import SimpleNamespace

import pytest

from kgs_core.config import TableSpec
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.lake.rule.first_start import BEGINS_ANEW, GroupOffset
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import TopicId, TopicPartition
from tests.kgs_yaml import kgs_yaml

EARLIEST, COMMITTED, STABLE, END = 3, 40, 90, 100
AT_MS, AT = 1_700_000_000_000, 60


class FakeAdmin:
    """Every partition has the same offsets; a transaction is open from STABLE to END."""

    def offsets(self, tps, which, *, committed_reads=False):
        return dict.fromkeys(tps, EARLIEST if which == "earliest" else STABLE if committed_reads else END)

    def offsets_at(self, tps, timestamp_ms, *, committed_reads=False):
        found = {(AT_MS, True): AT, (AT_MS + 1, True): STABLE, (AT_MS + 1, False): END - 5}
        return dict.fromkeys(tps, found[timestamp_ms, committed_reads])


def first_offsets(start, committed):
    settings = kgs_yaml("/x", {"start": start})
    opener = TopicOpener(
        settings, open_lake(settings.lake), FakeAdmin(), SimpleNamespace(committed=committed), lambda *_: None
    )
    rule = settings.topics[0]
    return opener._first_offsets(TableSpec("t", "t", "t_dead_letters", rule), TopicId("id"), 2)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", EARLIEST),
        ("latest", STABLE),
        ("timestamp:2023-11-14T22:13:20Z", AT),
        ("timestamp:2023-11-14T22:13:20.001Z", STABLE),
        ("committed", EARLIEST),
    ],
)
def test_every_partition_begins_where_its_rule_says(start, expected):
    assert first_offsets(start, lambda _: {}) == {0: expected, 1: expected}
    if start != "committed":  # what is committed counts only where it is asked for
        assert first_offsets(start, lambda tps: dict.fromkeys(tps, GroupOffset(COMMITTED)))[0] == expected


def test_committed_offsets_count_where_there_are_any():
    found = first_offsets("committed", lambda _: {TopicPartition("t", 1): GroupOffset(COMMITTED)})
    assert found == {0: EARLIEST, 1: COMMITTED}


@pytest.mark.parametrize(
    ("topic_id", "expected"),
    [("id", COMMITTED), (BEGINS_ANEW, COMMITTED), ("id of a topic that was deleted", EARLIEST)],
)
def test_committed_offsets_of_a_deleted_topic_say_nothing_of_one_made_again(topic_id, expected):
    found = first_offsets("committed", lambda tps: dict.fromkeys(tps, GroupOffset(COMMITTED, TopicId(topic_id), "u")))
    assert found == {0: expected, 1: expected}
