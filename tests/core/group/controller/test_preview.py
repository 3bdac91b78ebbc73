"""A preview shows what the controller then writes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.controller.machine import begin, step
from kgs_core.group.controller.preview import preview
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment
from kgs_core.group.view.events import FleetSeen, RecordsRead, Write
from kgs_core.model import ConsumerId
from tests.core.group.controller.two_readers import RUNS, TARGET, group, look, measured, received, report
from tests.sim_group import options


def spares_shown_and_written(state, measurement):
    """By a preview of what is known, and by the controller's write; None: it writes no Target."""
    state, commands = look(state, measurement)
    shown = preview(state, 1.0)
    writes = [command for command in commands if isinstance(command, Write) and command.target is not None]
    return shown.spares, writes[0].target.spares if writes else None


NUMBERS = st.frozensets(st.integers(3, 5).map(ConsumerId))


@given(
    joined=NUMBERS,
    standing=NUMBERS,
    speeds=st.fixed_dictionaries({name: st.integers(1, 130) for name in "abc"}),
    count=st.integers(0, 3),
)
def test_a_preview_shows_the_spares_that_are_written(joined, standing, speeds, count):
    """Whoever has joined, whichever spares stand, and however many there shall be."""
    target = replace(TARGET, spares=tuple(sorted(standing)))
    others = [Member(number, Incarnation(f"of-{number}")) for number in sorted(joined)]
    reports = [received(report(member), 2 + n) for n, member in enumerate(others)]
    assignments = [received(MemberAssignment(member), 0) for member in others]
    state, _ = begin(options({"spare_consumers": count}), 0.0, 5_000_000)
    state, _ = step(state, RecordsRead((*group(target), *assignments, *reports)), 0.0)
    state, _ = step(state, FleetSeen(RUNS), 0.0)
    shown, written = spares_shown_and_written(state, measured(**speeds))
    assert written in {None, shown}
