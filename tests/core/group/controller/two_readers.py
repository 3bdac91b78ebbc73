"""Two consumers that read a partition each, as the topics tell of them, and words to drive a controller with."""

from kgs_core.group.controller.machine import step
from kgs_core.group.protocol import Change, Incarnation, Member, MemberAssignment, Phase, Received, Report, Target
from kgs_core.group.view.events import Note, Tick, Write, Written
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.load import Load
from kgs_core.ports import Run
from tests.processes import a_process

A, B, C = (TopicPartition(name, 0) for name in "abc")
ONE, TWO = Member(ConsumerId(1), Incarnation("one")), Member(ConsumerId(2), Incarnation("two"))
TARGET = Target(
    algorithm="mwf",
    assignment={A: 1, B: 2},
    spares=(),
    speeds={A: 80.0, B: 60.0},
    capacity=100.0,
    rscore=0.0,
    reason="first",
    known=(ONE, TWO),
    quarantined=(),
    time_ms=1_000,
    history=(Change(1_000, "first", 0, 0.0, 2),),
)


def report(member, *owned, sequence=1, applied=0, phase=Phase.READING, run_id=""):
    process = a_process(member.consumer, run_id)
    return Report(member, sequence, phase, 0.0, None, process, applied, frozenset(owned))


def received(message, offset=0, at_s=100.0):
    return Received(message, offset, round(at_s * 1000))


def group(target=TARGET):
    """Two consumers that read what the Target gives them."""
    return (
        received(target),
        received(MemberAssignment(ONE, frozenset({A})), 0),
        received(MemberAssignment(TWO, frozenset({B})), 0),
        received(report(ONE, A, run_id="run-1"), 0),
        received(report(TWO, B, run_id="run-2"), 1),
    )


RUNS = (Run(ConsumerId(1), "run-1", 50.0, is_over=False), Run(ConsumerId(2), "run-2", 50.0, is_over=False))


def acts(commands):
    """What is done, without the notes."""
    return [command for command in commands if not isinstance(command, Note)]


def the_write(stepped):
    """The only Write that a step leads to."""
    (write,) = [command for command in stepped[1] if isinstance(command, Write)]
    return write


def notes(commands, text):
    return [command.fields for command in commands if isinstance(command, Note) and command.text == text]


def measured(age_s=0.0, unknown="", offset=7, **speeds):
    partitions = {TopicPartition(name, 0): float(speed) for name, speed in speeds.items()}
    return Load(
        partitions,
        frozenset(TopicPartition(n, 0) for n in unknown),
        measurement_offset=offset,
        age_s=age_s,
    )


def look(state, event, now=1.0):
    """What a Tick after `event` leads to."""
    state, _ = step(state, event, now)
    return step(state, Tick(), now)


def written(write, offset=1):
    messages = [*([write.target] if write.target else []), *write.assignments, *write.tombstones]
    return Written([received(message, offset) for message in messages])
