"""Reading of the group's topics into the controller's state: from their beginnings, and what comes after."""

from collections.abc import Sequence
from dataclasses import replace

from kgs_core.group.controller.state import ChangeProgress, ControllerState, Listening
from kgs_core.group.protocol import Message, Received
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.lifetimes import take_lives


def read_from_beginning(
    state: ControllerState, messages: Sequence[Received[Message]], now: float, report_age_s: float
) -> ControllerState:
    """State after reading the topics from their beginnings: earlier knowledge is dropped, except for deaths."""
    view = GroupView().take_all(messages, now - report_age_s).bury(state.view.dead)
    newest_ms = max((one.timestamp_ms for one in messages), default=0)
    return replace(
        state,
        view=view,
        listening=Listening(now, now, take_lives({}, messages, now)),
        change=ChangeProgress(
            now - (newest_ms - view.target.timestamp_ms) / 1000 if view.target else None,
            accepted=state.change.accepted,
        ),
    )


def read_on(state: ControllerState, messages: Sequence[Received[Message]], now: float) -> ControllerState:
    """State after newer records, or none: a gap between two calls is no silence of others."""
    patience_s = state.options.membership.suspect_after_s
    before = state.listening
    counts_from = now + patience_s if now - before.at > patience_s / 2 else before.silence_counts_from
    return replace(
        state,
        view=state.view.take_all(messages, now),
        listening=Listening(now, counts_from, take_lives(before.lives, messages, now)),
    )
