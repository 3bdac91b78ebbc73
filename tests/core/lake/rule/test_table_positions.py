"""Where a topic's tables stand: of some partitions, and after a batch."""

from kgs_core.lake.rule.batch import SidePart, TablePositions, TopicBatch
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import FileWritten

FILE = FileWritten("f", 1, 1, "")
AT = TablePositions({0: 5, 1: 7}, {0: 3}, {0: 2, 1: 2}, {"eu": {0: 4, 1: 9}, "us": {0: 1}})


def test_those_of_some_partitions_are_whole():
    assert AT.of({1}) == TablePositions({1: 7}, {1: None}, {1: 2}, {"eu": {1: 9}, "us": {1: None}})


def test_a_batch_moves_the_marks_of_the_tables_that_it_writes_to_and_none_back():
    ranges = {0: OffsetRange(5, 8), 1: OffsetRange(7, 8)}
    batch = TopicBatch("t", TopicId("id"), ranges, (), sides={"eu": SidePart([FILE], {})}, leader_epochs={0: 3})
    assert AT.after(batch) == TablePositions({0: 8, 1: 8}, {0: 3}, {0: 3}, {"eu": {0: 8, 1: 9}, "us": {0: 1}})
