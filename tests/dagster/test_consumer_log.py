"""What a consumer's run says of what it reads."""

import queue
from dataclasses import replace

import pytest

from kgs_core.group.membership.member import Facts, Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Incarnation, Member
from kgs_core.model import ConsumerId, TopicPartition
from kgs_dagster.consumer_log import ReadingLog, reading
from tests.processes import a_process

JOINED = Membership.join(
    Identity(Member(ConsumerId(3), Incarnation("i")), a_process()), MembershipTiming(1.0, 30.0, 300.0), 0.0
)


def owning(*names, positions=(), stopped=()):
    tps = {name: TopicPartition(name.rpartition(":")[0], int(name.rpartition(":")[2])) for name in names}
    facts = Facts({tps[n]: why for n, why in stopped}, {tps[n]: at for n, at in positions})
    return replace(JOINED, owned=frozenset(tps.values()), facts=facts)


MANY = [f"a:{number}" for number in range(500)]
NOTHING = "consumer 3 reads nothing: no partition is given to it"


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (JOINED, NOTHING),
        (
            owning("b:0", "a:1", "a:0", positions=[("a:0", 7), ("a:1", 0), ("b:0", 12)]),
            "consumer 3 reads 3 partitions: a 0 from 7, 1 from 0; b 0 from 12",
        ),
        (
            owning("a:0", "a:1", "b:0", positions=[("b:0", 1)], stopped=[("a:0", "no table"), ("a:1", "no table")]),
            "consumer 3 reads 1 of its 3 partitions: b 0 from 1; stopped: a (2): no table",
        ),
        (
            owning(*MANY, positions=[(name, 7) for name in MANY]),
            f"consumer 3 reads 500 partitions: a {', '.join(f'{n} from 7' for n in range(20))}; 480 more",
        ),
        (
            owning(*MANY, stopped=[(name, "no table") for name in MANY]),
            "consumer 3 reads 0 of its 500 partitions; stopped: a (500): no table",
        ),
    ],
)
def test_partitions_positions_and_what_stands_still_are_a_short_line(found, line):
    """It is an event in Dagster's database."""
    assert reading(found) == line


def test_a_line_comes_with_every_change_and_with_nothing_else():
    """Positions move with every batch; an event for each would fill the database."""
    logged = queue.Queue()
    states = [None, JOINED, JOINED, owning("a:0"), owning("a:0", positions=[("a:0", 1)])]
    states += [owning("a:0", positions=[("a:0", at)]) for at in range(2, 50)] + [JOINED]

    def look():
        return states.pop(0) if len(states) > 1 else states[0]

    with ReadingLog(look, logged.put, every_s=0.0):
        lines = [logged.get(timeout=60) for _ in range(3)]
    assert lines == [NOTHING, "consumer 3 reads 1 partition: a 0 from 1", NOTHING]
    assert logged.empty()


def test_between_two_lines_goes_the_time_that_was_asked_for():
    logged, changes = queue.Queue(), iter(range(1_000_000))

    def look():  # another set each time
        name = f"a:{next(changes)}"
        return owning(name, positions=[(name, 0)])

    with ReadingLog(look, logged.put, every_s=3600.0):
        logged.get(timeout=60)
    assert logged.empty()
    assert next(changes) == 1


def test_a_database_that_is_away_costs_a_line_and_nothing_else():
    logged = queue.Queue()
    errors = [OSError("locked")]

    def tell(line):
        if errors:
            raise errors.pop()
        logged.put(line)

    with ReadingLog(lambda: JOINED, tell, every_s=0.0):
        assert logged.get(timeout=60) == reading(JOINED)
