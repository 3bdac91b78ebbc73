"""Partitions and the texts of others, as people are shown them."""

import pytest

from kgs_core.group.view.plain_text import printable, ranges
from kgs_core.model import TopicPartition


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((3,), "t:3"), ((0, 1, 2), "t:0-2"), ((9, 0, 2, 1, 14, 10), "t:0-2,9-10,14"), ((), "")],
)
def test_partitions_are_listed_as_ranges(numbers, said):
    assert ranges([TopicPartition("t", n) for n in numbers]) == said


def test_topics_are_listed_by_name():
    assert ranges([TopicPartition("b", 1), TopicPartition("a", 3), TopicPartition("b", 2)]) == "a:3, b:1-2"
    assert ranges([TopicPartition("a\x1b[2J", 0)]) == "a\\x1b[2J:0"


def test_what_is_no_character_for_people_is_shown_as_its_escape():
    assert printable("a\x1b[31m\x07 b\n  c\u202ed \u00e9") == "a\\x1b[31m\\x07 b c\\u202ed \u00e9"
