"""A request for a plan repeats the state that people want: a pause must not be lost by it."""

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.group.protocol import DesiredState, DesiredVersion, Received, RunState
from kgs_core.group.topics.operator_topic import OperatorTopicWriter

REQUEST = DesiredState(RunState.RUNNING, "sam", 9, apply_ms=9)
PAUSED, RUNNING = (DesiredState(state, "eve", 1) for state in (RunState.PAUSED, RunState.RUNNING))


class Topic(OperatorTopicWriter):
    """The topic in memory; `meanwhile` is written by somebody else just before the next record."""

    def __init__(self, *messages, meanwhile=()):
        self.log, self.meanwhile = list(messages), list(meanwhile)

    def write(self, desired, timeout_s=0.0):
        self.log += [*self.meanwhile, desired]
        self.meanwhile = []
        return Received(desired, len(self.log) - 1, 0)

    def read(self, timeout_s=0.0):
        return [Received(message, offset, 0) for offset, message in enumerate(self.log)]


@pytest.mark.parametrize("before", [(), (PAUSED, RUNNING), (DesiredVersion("1", "a", "eve", 1),)])
def test_a_request_is_written_while_the_group_is_to_run(before):
    topic = Topic(*before, meanwhile=[RUNNING])
    topic.ask_for_plan(REQUEST)
    assert topic.log == [*before, RUNNING, REQUEST]


def test_it_is_refused_while_people_want_another_state():
    topic = Topic(RUNNING, PAUSED)
    with pytest.raises(UnsafeError, match="the group is to be paused: nothing is moved before `kgs resume`"):
        topic.ask_for_plan(REQUEST)
    assert topic.log == [RUNNING, PAUSED]


def test_a_pause_that_comes_in_between_stands_again():
    topic = Topic(RUNNING, meanwhile=[RUNNING, PAUSED])
    with pytest.raises(UnsafeError):
        topic.ask_for_plan(REQUEST)
    assert topic.log[-2:] == [REQUEST, PAUSED]
