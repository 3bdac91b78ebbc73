"""What a reader of the group's topics takes in, and what it leaves out."""

from types import SimpleNamespace

import pytest
from confluent_kafka.cimpl import Message
from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.protocol import Incarnation, Member, Phase, Report
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

REPORTS = TopicPartition("kgs.g.controller.metadata", 0)
PROCESS = a_process()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), min_size=1))
def test_a_record_that_comes_again_behind_an_assign_is_taken_once(runs):
    """The client goes back to the position that it was last given: what was on its way comes before that, and again."""
    reader = object.__new__(GroupReader)
    reader._topics = SimpleNamespace(queue=int)
    reader._kinds, reader._only, reader._read = {REPORTS: GroupTopic.REPORTS}, None, []
    reader._refusals, reader.positions = Refusals(), {REPORTS: 0}
    highest = -1
    for start, length in runs:
        first = min(start, highest + 1)  # without a hole, as the client gives them
        for offset in range(first, first + length):
            member = Member(ConsumerId(offset % 60 + 1), Incarnation("x"))
            key, value = encode(Report(member, 1, Phase.READING, 0.0, None, PROCESS, None, frozenset()))
            reader._sort_in(Message(topic=REPORTS.topic, partition=0, offset=offset, key=key, value=value))
        highest = max(highest, first + length - 1)
    assert [read.received.offset for read in reader._read] == list(range(highest + 1))
    assert reader.positions == {REPORTS: highest + 1}
    assert reader._refusals.count == 0


FORMER = {
    b"plan": b'{"version":1,"type":"plan","plan_id":"0","target_offset":0,"algorithm":"mwf","moves":{},"spares":[],'
    b'"speeds_bytes_per_s":{},"rscore":0.0,"consumers":0,"reason":"","expires_after_s":10.0,"may_be_approved":false,'
    b'"time_ms":0,"measurement_offset":null}',
    b"plan#2": b'{"version":2,"type":"part","id":"' + b"0" * 64 + b'","number":2,"parts":3,"text":"x"}',
    b"approval": b'{"version":1,"type":"approval","plan_id":"0","plan_offset":9,"by":"sam","time_ms":17}',
}
"""As kgs 0.1 wrote them."""


@pytest.mark.parametrize("key", FORMER)
def test_what_only_an_earlier_version_reads_is_passed_over_in_silence(key):
    """Groups are taken over while they run, and a compacted topic keeps the newest of each for good."""
    reader = object.__new__(GroupReader)
    reader._only, reader._read, reader._refusals, reader.positions = None, [], Refusals(), {REPORTS: 0}
    for offset, value in enumerate((FORMER[key], None)):
        reader._sort_in(Message(topic=REPORTS.topic, partition=0, offset=offset, key=key, value=value))
    assert (reader._read, reader._refusals.count, reader.positions) == ([], 0, {REPORTS: 2})
