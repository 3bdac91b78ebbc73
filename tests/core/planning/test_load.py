"""Unknown is not zero."""

from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load

A, B, C, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)


def test_a_partition_never_measured_is_taken_for_as_fast_as_its_topics_others():
    load = Load({A: 10.0, B: 30.0}, unknown=frozenset({B, C, OTHER}))
    assert load.write_speeds() == {A: 10.0, B: 30.0, C: 20.0, OTHER: 20.0}
    assert Load({}, unknown=frozenset({A})).write_speeds() == {A: 0.0}
