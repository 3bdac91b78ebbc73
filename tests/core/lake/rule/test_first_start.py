"""A first start and one that is none, by the group's offsets."""

import pytest

from kgs_core.lake.rule.first_start import BEGINS_ANEW, GroupOffset, offsets_read, second_start
from kgs_core.model import TopicId, TopicPartition

TP, ID = TopicPartition("t", 0), TopicId("id")


@pytest.mark.parametrize(
    ("committed", "is_read", "is_read_by_start_committed"),
    [
        (None, False, False),
        (GroupOffset(7, ID, "t"), True, True),
        (GroupOffset(0, ID, "t"), True, True),  # begun: with `start: latest` there may be records since
        (GroupOffset(7, TopicId("earlier"), "t"), False, False),
        (GroupOffset(7, ID, "t_v1"), False, False),  # the rule names another table since
        (GroupOffset(7, BEGINS_ANEW), False, False),
        (GroupOffset(7), True, False),  # of another tool, or of an earlier kgs
    ],
)
def test_offsets_of_this_topic_id_are_those_of_a_lake_that_was_there(committed, is_read, is_read_by_start_committed):
    found = {} if committed is None else {TP: committed}
    for start in ("earliest", "latest", "timestamp:2026-01-01T00:00:00Z"):
        assert bool(offsets_read(found, ID, "t", start)) is is_read
    assert bool(offsets_read(found, ID, "t", "committed")) is is_read_by_start_committed


def test_the_way_out_stays_one_line_where_there_are_many_partitions():
    said = second_start("bronze/t", "g", {TopicPartition("t", p): 5 for p in range(500)})
    assert "group g has read t:0 up to 5, t:1 up to 5, t:2 up to 5 and 497 more partitions" in said
    assert said.endswith("kgs accept-topic t --yes")
    assert "\n" not in said
