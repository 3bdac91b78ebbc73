"""A group's messages in few letters: "3a" is incarnation a of consumer 3, "pq" are two partitions."""

from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Phase, Received, Report, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from tests.processes import a_process

HERE = a_process()


def member(name):
    return Member(ConsumerId(int(name[:-1])), Incarnation(name))


def tps(letters):
    return frozenset(TopicPartition(letter, 0) for letter in letters)


def plan(**letters):
    """`plan(c1="pq")`: partitions p and q for consumer 1."""
    return {tp: ConsumerId(int(key[1:])) for key, value in letters.items() for tp in sorted(tps(value))}


def report(name, owned="", applied=None, sequence=0, phase=Phase.READING):
    return Report(member(name), sequence, phase, 0.0, None, HERE, applied, tps(owned))


def heartbeat(name, sequence, phase=Phase.READING, bytes_per_s=0.0):
    return Heartbeat(member(name), sequence, phase, bytes_per_s, None)


def gives(name, owned="", revoking="", pending="", retire=False):
    return MemberAssignment(member(name), tps(owned), tps(revoking), tps(pending), retire)


def target(known="", **letters):
    assignment = plan(**letters)
    speeds = dict.fromkeys(assignment, 1.0)
    return Target("mwf", assignment, (), speeds, 100.0, 0.0, "", tuple(member(n) for n in known.split()), (), 0)


def at(offset, message, ms=0):
    return Received(message, offset, ms)


def view_of(*records, now=0.0):
    return GroupView().take_all(records, now)


def settled(**letters):
    """Consumers 1, 2, ... as incarnations 1a, 2a, ... own what they were assigned and say so."""
    records = []
    for key, owned in letters.items():
        name = f"{key[1:]}a"
        records += [at(10, gives(name, owned)), at(int(key[1:]), report(name, owned, applied=10))]
    return view_of(*records)


def add(view, *records):
    return view.take_all(records, 0.0)


def carried_out(view, changes, offset):
    assignments = [at(offset + n, o) for n, o in enumerate(changes.assignments)]
    return add(view, *assignments, *(at(offset + 50, t) for t in changes.tombstones))
