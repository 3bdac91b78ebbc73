"""What a reader of the group's topics takes in, and what it leaves out."""

from types import SimpleNamespace

import pytest

from kgs_core.adapters.group.reader import GroupReader
from kgs_core.adapters.group.topics import GroupTopic
from kgs_core.errors import ProtocolError
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Heartbeat, Incarnation, Member, Phase, Report, Starting
from kgs_core.protocol.codec import encode
from kgs_core.protocol.record_parts import PartsReader
from tests.processes import a_process

REPORTS = TopicPartition("kgs.g.controller.metadata", 0)
PROCESS = a_process()


def says(consumer):
    member = Member(ConsumerId(consumer), Incarnation("x"))
    return [
        Report(member, 1, Phase.READING, 0.0, None, PROCESS, None, frozenset()),
        Heartbeat(member, 2, Phase.READING, 0.0, None),
        Starting(member, PROCESS, "waits"),
    ]


def taken(message, highest):
    reader = object.__new__(GroupReader)
    reader._topics = SimpleNamespace(highest_consumer=highest, queue=int)
    reader._kinds = {REPORTS: GroupTopic.REPORTS}
    reader._parts = {REPORTS: PartsReader(pytest.fail)}
    key, value = encode(message)
    return reader._message(REPORTS, SimpleNamespace(key=lambda: key, value=lambda: value))


@pytest.mark.parametrize("message", says(64), ids=["report", "heartbeat", "starting"])
def test_a_consumer_without_a_queue_is_left_out(message):
    """One valid report of a number beyond the queues ended every controller that read it: it could not be answered."""
    with pytest.raises(ProtocolError, match="of consumer 64: only consumers 1 to 63 have a queue"):
        taken(message, 63)


@pytest.mark.parametrize("message", says(63), ids=["report", "heartbeat", "starting"])
@pytest.mark.parametrize("highest", [63, None], ids=["it has one", "not known"])
def test_any_other_is_taken(message, highest):
    assert taken(message, highest) == message
