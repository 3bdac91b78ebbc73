"""The transition table, and every event in every state."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from kgs_core.errors import ProtocolError
from kgs_core.group.controller.machine import step
from kgs_core.group.view.events import (
    Fence,
    Fenced,
    FleetSeen,
    ReadToEnd,
    RecordsRead,
    StartFailed,
    Tick,
    Write,
    WriteFailed,
    Written,
)
from kgs_core.group.view.transitions import TRANSITIONS, Cause, State, follow
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.txt"))
EVENTS = (
    RecordsRead(),
    Written(()),
    WriteFailed("no answer"),
    Fenced(),
    FleetSeen(()),
    Load({}),
    StartFailed(ConsumerId(1), "no room"),
    Tick(),
)
SEEN_IN_NO_SCENARIO = {
    # Only another controller that fences in the same instant brings it about
    (State.SYNCHRONIZE, Cause.FENCED),
    # The ordinary course, which a transcript's Targets tell: see ORDINARY there
    (State.SENTINEL, Cause.ANOTHER_TARGET),
    (State.REASSIGN, Cause.TARGET_WRITTEN),
    (State.GROUP_MANAGEMENT, Cause.CONVERGED),
}


@pytest.mark.parametrize(("state", "cause"), [*product(State, Cause)])
def test_a_transition_is_in_the_table_or_a_fault(state, cause):
    if (state, cause) in TRANSITIONS:
        assert follow(state, cause) is TRANSITIONS[state, cause]
    else:
        with pytest.raises(ProtocolError, match=re.escape(state)):
            follow(state, cause)


def test_nothing_leads_out_of_the_end_and_something_leads_to_every_state():
    assert not [state for state, _ in TRANSITIONS if state is State.ENDED]
    assert {*TRANSITIONS.values()} == {*State}


def test_every_transition_is_gone_through_in_some_scenario():
    text = "\n".join(path.read_text() for path in SCENARIOS)
    lines = re.finditer(r"^ *\d+s  (.+?) -> (.+?): ([^(\n]+?)(?: \(|$)", text, re.MULTILINE)
    seen = {line.groups() for line in lines}
    missing = {key for key, to in TRANSITIONS.items() if (key[0], to, key[1]) not in seen}
    assert missing == SEEN_IN_NO_SCENARIO


def answers_nothing(state, event):
    """An answer to a command that was not given."""
    is_stray = isinstance(event, Written) and state.writing is None
    return is_stray or (isinstance(event, WriteFailed) and state.name is State.SENTINEL)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("name", State)
def test_every_event_is_taken_in_every_state(fresh, name, event):
    state = replace(fresh, name=name)
    if name is State.ENDED:
        assert step(state, event, 5.0) == (state, ())
    elif answers_nothing(state, event):
        with pytest.raises(ProtocolError):
            step(state, event, 5.0)
    else:
        after, _ = step(state, event, 5.0)
        assert after.name in {name, *(to for (start, _), to in TRANSITIONS.items() if start is name)}


@pytest.mark.parametrize("name", [State.SYNCHRONIZE, State.REASSIGN, State.GROUP_MANAGEMENT])
def test_whatever_came_to_nothing_begins_with_a_fence_again(fresh, name):
    state = replace(fresh, name=name, writing=Write())
    after, commands = step(state, WriteFailed("no answer"), 5.0)
    assert (after.name, after.writing) == (State.SYNCHRONIZE, None)
    assert commands[-2:] == (Fence(), ReadToEnd())


@pytest.mark.parametrize("name", [name for name in State if name is not State.ENDED])
def test_a_fenced_controller_is_at_its_end(fresh, name):
    after, _ = step(replace(fresh, name=name), Fenced(), 5.0)
    assert after.name is State.ENDED
    assert after.outcome is not None
    assert after.outcome.result == "fenced"
    assert step(after, Tick(), 6.0) == (after, ())
