"""The simulated Kafka keeps what the real one keeps: order, transactions, one writer; and what the ports promise."""

from random import Random

import pytest

from kgs_core.errors import FencedError, TransientError
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Phase, Tombstone
from kgs_core.model import ConsumerId, TopicPartition
from tests.world.chance import Chance, FaultRates
from tests.world.consumers import Habits
from tests.world.fleet import SimFleet
from tests.world.ports import SimAssignmentReader, SimControllerWriter, SimGroupTopicReader, SimReportWriter
from tests.world.topics import Clock, Topics, queue_of

ONE, TWO = (Member(ConsumerId(n), Incarnation(f"i{n}")) for n in (1, 2))


@pytest.fixture
def topics():
    return Topics(Clock())


def chance(**trouble):
    return Chance(Random(1), FaultRates(**trouble))


def assignments(*members):
    return tuple(MemberAssignment(member, frozenset({TopicPartition("a", 0)})) for member in members)


def beats(topics, count):
    for number in range(count):
        SimReportWriter(topics, chance()).append(Heartbeat(ONE, number, Phase.READING, 0.0, None), 0.0)


def fenced_writer(topics, **trouble):
    reader = SimControllerWriter(topics, chance(**trouble))
    reader.fence()
    return reader


def messages(topics):
    return [received.message for received in topics.history]


def test_an_older_writer_writes_nothing_and_the_marker_of_a_transaction_takes_an_offset(topics):
    old, new = fenced_writer(topics), fenced_writer(topics)
    with pytest.raises(FencedError):
        old.write(None, assignments(ONE), ())
    assert topics.history == []
    first = new.write(None, assignments(ONE, ONE), ())
    second = new.write(None, (), (Tombstone(ONE),))
    assert [received.offset for received in (*first, *second)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("trouble", "is_there", "is_there_after_a_fence"),
    [("write_lost", False, False), ("write_unsure", True, True), ("write_hangs", False, True)],
)
def test_a_transaction_of_unknown_outcome_is_there_as_a_whole_or_not_at_all(
    topics, trouble, is_there, is_there_after_a_fence
):
    with pytest.raises(TransientError):
        fenced_writer(topics, **{trouble: 1}).write(None, assignments(ONE, TWO), ())
    assert messages(topics) == is_there * [*assignments(ONE, TWO)]
    for _ in range(2):
        fenced_writer(topics)
        assert messages(topics) == is_there_after_a_fence * [*assignments(ONE, TWO)]


def test_whoever_is_late_sees_everything_in_order_at_last(topics):
    beats(topics, 50)
    reader = SimGroupTopicReader(topics, chance(late=0.9))
    seen = []
    for _ in range(500):
        seen += [received.offset for received in reader.poll(0.0)]
    assert seen == [*range(50)]


def test_whoever_sees_records_again_sees_them_in_order(topics):
    beats(topics, 50)
    reader = SimGroupTopicReader(topics, chance(late=0.5, doubled=0.5))
    polls = [[received.offset for received in reader.poll(0.0)] for _ in range(500)]
    assert all(poll == [*range(poll[0], poll[-1] + 1)] for poll in polls if poll)
    assert sum(len(poll) for poll in polls) > 50
    assert {offset for poll in polls for offset in poll} == {*range(50)}


@pytest.mark.parametrize(
    ("trouble", "again"), [({"late": 1}, False), ({"doubled": 1}, True), ({"late": 1, "doubled": 1}, True)]
)
def test_reading_to_the_end_is_complete_whatever_the_weather(topics, trouble, again):
    """After it, what comes is new or, where records are seen again, the last of what was there."""
    beats(topics, 50)
    reader = SimGroupTopicReader(topics, chance(**trouble))
    assert [received.offset for received in reader.read_to_end()] == [*range(50)]
    polls = [[received.offset for received in reader.poll(0.0)] for _ in range(20)]
    assert all(poll == [*range(50 - len(poll), 50)] for poll in polls), polls
    assert any(polls) == again


def test_a_queue_is_opened_at_its_end(topics):
    writer = fenced_writer(topics)
    writer.write(None, assignments(ONE), ())
    reader = SimAssignmentReader(topics, chance(), ONE.consumer)
    writer.write(None, assignments(TWO), ())
    assert reader.newest(0.0) == []
    writer.write(None, assignments(ONE), (Tombstone(ONE),))
    assert [received.offset for received in reader.newest(0.0)] == [2]
    assert len(topics.log(queue_of(ONE.consumer))) == 3


@pytest.mark.parametrize(("trouble", "count"), [("report_lost", 0), ("report_unsure", 1)])
def test_nobody_knows_what_became_of_a_report(topics, trouble, count):
    with pytest.raises(TransientError):
        SimReportWriter(topics, chance(**{trouble: 1})).append(Heartbeat(ONE, 1, Phase.READING, 0.0, None), 0.0)
    assert len(topics.history) == count


@pytest.fixture
def fleet(topics):
    return SimFleet(topics, chance(), Habits(MembershipTiming(2, 30, 300)))


def test_a_fleet_knows_who_is_dead_unless_it_is_blind(fleet, topics):
    process = fleet.processes[fleet.start(ConsumerId(1)).handle]
    assert fleet.is_dead(process.process) is False
    topics.clock.now = 3.0
    process.kill()
    assert fleet.is_dead(process.process) is True
    assert [(found.is_over, found.started_s, found.exit_code) for found in fleet.runs()] == [(True, 3.0, -9)]
    fleet.is_blind = True
    assert fleet.is_dead(process.process) is None
    assert [run.is_over for run in fleet.runs()] == [False]


def test_a_fleet_starts_nobody_twice_that_it_knows_to_run(fleet):
    run = fleet.start(ConsumerId(1))
    assert fleet.start(ConsumerId(1)).handle == run.handle
    fleet.forget()
    assert fleet.runs() == []
    assert fleet.start(ConsumerId(1)).handle != run.handle


def test_a_consumer_lets_go_only_after_its_batch(topics, fleet):
    """And its report says so only afterwards."""
    writer = fenced_writer(topics)
    process = fleet.processes[fleet.start(ConsumerId(1)).handle]
    both, less = frozenset({TopicPartition("a", 0), TopicPartition("b", 0)}), frozenset({TopicPartition("a", 0)})
    topics.clock.now = 1.0
    process.turn()
    writer.write(None, (MemberAssignment(process.member, both),), ())
    process.turn()
    assert process.owned == both
    writer.write(None, (MemberAssignment(process.member, less, both - less),), ())
    process.turn()
    assert (process.owned, topics.history[-1].message) == (both, MemberAssignment(process.member, less, both - less))
    topics.clock.now = 2.0
    process.turn()
    assert (process.owned, topics.history[-1].message.owned) == (less, less)
