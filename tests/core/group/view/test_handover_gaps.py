"""How long partitions are without a reader: from the report without them to the report with them."""

import pytest

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Phase, Received, Report
from kgs_core.group.view.handover_gaps import Unread
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ONE, TWO = (Member(ConsumerId(n), Incarnation(f"life-{n}")) for n in (1, 2))


def report(member, at_s, sequence, *owned, phase=Phase.READING):
    process = a_process()
    return Received(Report(member, sequence, phase, 0.0, None, process, None, frozenset(owned)), 0, round(at_s * 1000))


def heartbeat(member, at_s, sequence):
    return Received(Heartbeat(member, sequence, Phase.READING, 0.0, None), 0, round(at_s * 1000))


@pytest.fixture
def unread():
    return Unread()


@pytest.mark.parametrize(
    ("told", "gaps_s", "unowned"),
    [
        ([report(ONE, 0, 1, A, B), report(ONE, 1.5, 2, B)], {}, {A}),
        ([report(ONE, 0, 1, A, B), report(ONE, 1.5, 2, B), report(TWO, 3.25, 1, A)], {A: 1.75}, set()),
        (
            [report(ONE, 0, 1, A), report(ONE, 1, 2), report(TWO, 2, 1, A), report(TWO, 5, 2), report(ONE, 7, 3, A)],
            {A: 3.0},
            set(),
        ),
        ([report(ONE, 0, 1, A), heartbeat(ONE, 4, 2), report(TWO, 30, 1, A)], {A: 26.0}, set()),
        ([report(ONE, 0, 1, A), report(ONE, 2, 2, A, phase=Phase.ENDED), report(TWO, 3, 1, A)], {A: 1.0}, set()),
        ([report(ONE, 0, 1, A), report(TWO, 30, 1, A), report(ONE, 40, 2)], {A: 30.0}, set()),
        (2 * [report(ONE, 0, 1, A), report(ONE, 1, 2), report(TWO, 2, 1, A)], {A: 1.0}, set()),
        ([Received(MemberAssignment(ONE, frozenset({A})), 0, 0)], {}, set()),
    ],
    ids=[
        "let go and not taken",
        "from letting go to taking",
        "back and forth adds up, a first owner costs nothing",
        "the dead count from when they were heard last",
        "an end in order lets everything go",
        "who lost it as a suspect and lets go later frees nothing",
        "what is reported twice counts once",
        "other messages say nothing of it",
    ],
)
def test_how_long_a_partition_is_unread(unread, told, gaps_s, unowned):
    unread.take(told)
    assert (unread.gaps_s, unread.unowned) == (gaps_s, unowned)


def test_what_was_before_can_be_left_out_and_the_last_to_find_an_owner_tells_when_all_have(unread):
    assert unread.taken_ms is None
    unread.take([report(ONE, 0, 1, A, B), report(ONE, 1, 2, B), report(TWO, 2.5, 1, A), report(TWO, 3, 2, A)])
    assert unread.taken_ms == 2500
    unread.forget_gaps()
    assert unread.taken_ms is None
    unread.take([report(ONE, 3, 3), report(TWO, 4, 3, A, B)])
    assert unread.gaps_s == {B: 1.0}
    assert unread.taken_ms == 4000
    unread.take([report(TWO, 5, 4, A), report(TWO, 6, 5, A, B)])
    assert unread.taken_ms == 4000, "it has it back"
