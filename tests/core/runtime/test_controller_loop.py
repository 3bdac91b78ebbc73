"""The control loop over the simulated group: consumers that obey, a Kafka that fails now and then."""

import pytest

from kgs_core.errors import FencedError, PermanentError, TransientError
from kgs_core.group.view.events import Note
from kgs_core.model import TopicPartition
from kgs_core.runtime.controller_loop import ControlLoop, ControlPorts, note_line
from kgs_core.system.shutdown import StopFlag
from tests.sim_group import SimGroup, options

FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}


class Failing:
    """A port whose next calls fail, before they do anything or when they have done it."""

    def __init__(self, port, world):
        self.port, self.world = port, world

    def __getattr__(self, name):
        def call(*arguments):
            self.world.asked.append(name)
            before, after = self.world.fails[name].pop(0) if self.world.fails.get(name) else (None, None)
            if before is not None:
                raise before
            result = getattr(self.port, name)(*arguments)
            if after is not None:
                raise after
            return result

        return call


class World(SimGroup):
    """A group whose time goes by while the controller polls; it is asked to end when `until` is true."""

    def __init__(self, until=lambda world: world.is_converged()):
        super().__init__(options())
        self.fails, self.asked, self.ending = {}, [], StopFlag()
        self.publish(**FOUR)
        self.events = [lambda: until(self) and self.ending.set()]

    def run(self):
        reader, writer = self.controller()
        ports = ControlPorts(*(Failing(port, self) for port in (reader, writer, self.fleet, self)))
        clocks = self.clocks
        return ControlLoop("g", self.options, ports, clocks.steady, clocks.wall).run(self.ending)

    def fail(self, what, before=None, after=None):
        self.fails.setdefault(what, []).append((before, after))

    def newest(self):
        return self.at(None)

    def is_converged(self):
        target = self.target()
        return len(self.owners()) == 4 and target.assignment == {
            TopicPartition(p, 0): c for p, c in self.owners().items()
        }


def test_a_group_comes_up_and_reads_everything():
    """200 bytes/s and 100 for each: two consumers."""
    world = World()
    assert world.run() is None
    assert world.asked[:2] == ["fence", "read_to_end"]
    assert sorted(world.owners().values()) == [1, 1, 2, 2]
    assert world.target().measurement_offset == 0


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
        "partitions": (TopicPartition("t", 0), TopicPartition("t", 1)),
        "why": "",
        "n": (),
    }
    assert note_line(Note("rebalance", fields)) == (
        'rebalance reason="consumer lost: 2" rscore=0.250 moved=1 partitions=t:0,t:1'
    )


def test_a_long_list_in_a_note_is_cut():
    line = note_line(Note("StartConsuming", {"partitions": tuple(TopicPartition("t", n) for n in range(22))}))
    assert line.endswith(',t:19,and 2 more"')
