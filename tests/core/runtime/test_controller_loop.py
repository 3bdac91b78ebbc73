"""The control loop over the simulated group: consumers that obey, a Kafka that fails now and then."""

from dataclasses import dataclass, field
from random import Random

import pytest

from kgs_core.config.membership import MembershipSettings
from kgs_core.config.packing import PackingSettings
from kgs_core.errors import FencedError, PermanentError, TransientError
from kgs_core.group.controller.state import Options
from kgs_core.group.invariants.assignments import check_single_owner
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import DesiredState, RunState, Target
from kgs_core.group.view.events import Measured, Note
from kgs_core.model import TopicPartition
from kgs_core.planning.load import Load
from kgs_core.runtime.controller_loop import ControlLoop, ControlPorts, note_line
from kgs_core.system.shutdown import StopFlag
from tests.world.chance import Chance
from tests.world.consumers import Habits
from tests.world.fleet import SimFleet
from tests.world.ports import SimControllerWriter, SimGroupTopicReader
from tests.world.topics import OPERATOR, TARGETS, Clock, Topics

TPS = [TopicPartition("t", n) for n in range(4)]
SPEEDS = dict.fromkeys(TPS, 60.0)
LIMIT_S = 600.0
OPTIONS = Options(
    PackingSettings(packing_capacity_bytes_per_s=150.0, consumer_capacity_bytes_per_s=200.0, spare_consumers=0),
    MembershipSettings(),
    lambda: Random(0),
)


@dataclass
class Failing:
    """A port whose next calls fail, before they do anything or when they have done it."""

    port: object
    world: "World"

    def __getattr__(self, name):
        def call(*arguments):
            self.world.asked.append(name)
            before, after = self.world.fails[name].pop(0) if self.world.fails.get(name) else (None, None)
            if before is not None:
                raise before
            result = getattr(self.port, name)(*arguments)
            self.world.check()
            if after is not None:
                raise after
            return result

        return call


@dataclass
class World:
    """A group whose time goes by while the controller polls; it is asked to end when `until` is true."""

    until: object = lambda world: world.is_converged()
    ending: StopFlag = field(default_factory=StopFlag)
    topics: Topics = field(default_factory=lambda: Topics(Clock()))
    fails: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def __post_init__(self):
        chance = Chance(Random(1))
        self.fleet = SimFleet(self.topics, chance, Habits(MembershipTiming(2.0, 30.0, 300.0)))
        self.reader = SimGroupTopicReader(self.topics, chance)
        self.writer = SimControllerWriter(self.topics, chance)

    def run(self):
        ports = ControlPorts(*(Failing(port, self) for port in (self, self.writer, self.fleet, self)))
        clock = self.topics.clock
        return ControlLoop("g", OPTIONS, ports, lambda: clock.now, lambda: clock.now).run(self.ending)

    def fail(self, what, before=None, after=None):
        self.fails.setdefault(what, []).append((before, after))

    def read_to_end(self):
        return self.reader.read_to_end()

    def poll(self, timeout_s):
        self.topics.clock.now += timeout_s
        assert self.topics.clock.now < LIMIT_S, "the group did not get there"
        for process in self.fleet.living():
            process.turn()
        if self.until(self):
            self.ending.set()
        return self.reader.poll(timeout_s)

    def newest(self):
        return Measured(Load(SPEEDS), 7)

    def check(self):
        assert check_single_owner({p.member.incarnation: p.owned for p in self.fleet.living()}) == ()

    def owners(self):
        return {tp: process.consumer for process in self.fleet.living() for tp in process.owned}

    def target(self):
        return self.topics.log(TARGETS)[-1].message if self.topics.log(TARGETS) else None

    def is_converged(self):
        return self.owners().keys() == SPEEDS.keys() and self.owners() == self.target().assignment


def test_a_group_comes_up_and_reads_everything():
    """240 bytes/s and 150 for each: two consumers."""
    world = World()
    assert world.run() is None
    assert world.asked[:2] == ["fence", "read_to_end"]
    assert sorted(world.owners().values()) == [1, 1, 2, 2]
    assert isinstance(world.target(), Target)
    assert world.target().measurement_offset == 7


TRANSIENT = TransientError("Kafka does not answer", retry_after_s=0.0)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("what", ["fence", "read_to_end", "write", "poll"])
@pytest.mark.parametrize("times", [1, 3])
def test_what_fails_for_a_while_is_tried_again_and_doubles_nothing(what, moment, times):
    """`after`: it was done, and only the answer was lost."""
    world = World()
    for _ in range(times):
        world.fail(what, **{moment: TRANSIENT})
    world.run()
    assert world.is_converged()
    if what != "poll":
        assert world.asked.count("fence") == 1 + times - len(world.fails[what])


def test_a_write_of_unknown_outcome_is_looked_up_before_the_next_one():
    world = World()
    world.fail("write", after=TRANSIENT)
    world.run()
    after = world.asked[world.asked.index("write") + 1 :]
    assert after[:2] == ["fence", "read_to_end"]


@pytest.mark.parametrize("what", ["fence", "write"])
def test_a_fenced_controller_ends_for_good(what):
    world = World()
    world.fail(what, before=FencedError("a newer one"))
    with pytest.raises(FencedError, match="controller of group g: a newer controller has taken over") as caught:
        world.run()
    assert caught.value.exit_code == 3
    assert world.owners() == {}


def test_a_controller_that_reads_what_another_has_written_ends_for_good():
    def meddle(world):
        if world.is_converged():
            world.topics.append(world.target())
        return False

    with pytest.raises(FencedError):
        World(until=meddle).run()


def test_a_start_that_is_refused_is_tried_again_later():
    world = World()
    world.fail("start", before=TransientError("no memory"))
    world.run()
    assert world.is_converged()
    assert world.asked.count("start") == 3


def test_a_consumer_that_dies_is_replaced():
    def kill_one(world):
        first = world.fleet.processes.get("run-1")
        if first is not None and world.is_converged():
            first.kill()
        return first is not None and not first.lives and world.is_converged()

    world = World(until=kill_one)
    world.run()
    assert [process.lives for process in world.fleet.processes.values()] == [False, True, True]


def test_a_pause_empties_everybody_and_ends_nobody():
    def pause(world):
        if world.is_converged() and not world.topics.log(OPERATOR):
            world.topics.append(DesiredState(RunState.PAUSED, "me", 1))
        return bool(world.topics.log(OPERATOR)) and not world.owners()

    world = World(until=pause)
    world.run()
    assert len(world.fleet.living()) == 2


def test_a_stop_ends_everybody_and_not_the_controller():
    def end(world):
        if world.is_converged() and not world.topics.log(OPERATOR):
            world.topics.append(DesiredState(RunState.STOPPED, "me", 1))
        return bool(world.topics.log(OPERATOR)) and not world.fleet.living()

    world = World(until=end)
    assert world.run() is None
    assert [process.exit_code for process in world.fleet.processes.values()] == [0, 0]


def test_what_a_person_must_mend_ends_the_loop():
    world = World()
    world.fail("write", before=PermanentError("too large"))
    with pytest.raises(PermanentError, match="too large"):
        world.run()


def test_asked_to_end_it_leaves_the_consumers_alone():
    world = World(until=lambda world: bool(world.owners()))
    assert world.run() is None
    assert world.fleet.living()
    assert "stop" not in world.asked


def test_a_note_is_one_line_of_fields():
    fields = {
        "reason": "consumer lost: 2",
        "rscore": 0.25,
        "moved": 1,
        "partitions": tuple(TPS[:2]),
        "why": "",
        "n": (),
    }
    assert note_line(Note("rebalance", fields)) == (
        'rebalance reason="consumer lost: 2" rscore=0.250 moved=1 partitions=t:0,t:1'
    )


def test_a_long_list_in_a_note_is_cut():
    line = note_line(Note("StartConsuming", {"partitions": tuple(TopicPartition("t", n) for n in range(22))}))
    assert line.endswith(',t:19,and 2 more"')
