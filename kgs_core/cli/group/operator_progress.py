"""Progress of what people want: whether it has come true, what lacks, and waiting for it."""

import time
from collections.abc import Callable, Iterator, Mapping

import click
from rich.console import Console

from kgs_core.errors import PermanentError, TransientError
from kgs_core.group.controller.plan_request import ASKED
from kgs_core.group.protocol import Change, DesiredState, DesiredVersion, RunState
from kgs_core.group.view.plain_text import printable, ranges
from kgs_core.model import TopicPartition, grouped
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus

LOOK_EVERY_S = 0.5
REFUSED_FOR_S = 30.0
"""What a spare cannot open for so long does not pass by itself; an opening that failed in passing is tried sooner."""
_SHOWN = 3


def has_come(found: GroupStatus, state: RunState, fenced_after_s: float) -> bool:
    """Whether the group is as people want it; who was not heard for `fenced_after_s` has ended itself."""
    if state is RunState.STOPPED:
        return not any((line.report_age_s or 0.0) <= fenced_after_s for line in _living(found))
    return found.is_converged and not found.waiting


def is_replaced(found: GroupStatus) -> bool:
    """Whether everybody has the wanted version and configuration, and reads what he shall."""
    return found.is_converged and not found.outdated


def is_applied(found: GroupStatus, request: DesiredState) -> bool | None:
    """Whether a request to carry out a plan is answered, and the group as it shall be; None: another one has come."""
    if found.target is not None and found.target.applied_ms == request.apply_ms:
        return found.is_converged
    return False if found.desired_state == request else None


def applied(found: GroupStatus) -> Change | None:
    """What the last request for a plan has changed; None: there was no better packing, so nothing."""
    changes = found.target.history if found.target is not None else ()
    last = next((change for change in reversed(changes) if ASKED in change.reason), None)
    return last if last is not None and last.moved else None


def wait_for(
    look: Callable[[], GroupStatus], is_done: Callable[[GroupStatus], bool | None], timeout_s: float
) -> GroupStatus:
    """The first look that `is_done` is true of; it gives None when the request is not the newest one any more.

    Says what it waits for, in place on a terminal, else a line each time that it is something else.

    Raises:
        TransientError: not within `timeout_s` seconds; says what it still waits for.
        PermanentError: somebody has asked for something else meanwhile, or a replacement cannot go on.
    """
    waiting = _Waiting(timeout_s)
    with waiting:
        while True:
            try:
                found = look()
            except TransientError as e:
                waiting.note(str(e))
                continue
            done = is_done(found)
            if done:
                return found
            if done is None:
                by = printable(found.desired_state.by) if found.desired_state is not None else "somebody"
                raise PermanentError(
                    f"group {found.group}: another request has come meanwhile (by {by}): see `kgs status`"
                )
            waiting.refuse(found)
            waiting.note(f"group {found.group}: {lacks(found)}")


def lacks(found: GroupStatus) -> str:
    """What is still to happen, in one line."""
    if not found.controller_is_heard:
        way_out = end_now(found.desired_state)
        return f"the controller is down, or cannot measure: see its log, or start `kgs control`{way_out}"
    if found.waiting:
        reasons = list(_by_reason(found.waiting))
        more = f" and {len(reasons) - _SHOWN} more reasons" if len(reasons) > _SHOWN else ""
        return f"pending: {', '.join(reasons[:_SHOWN])}{more}"
    held = _not_packed(found) if found.request is not None else found.replacement if found.outdated else None
    if held is not None:
        return str(held)
    if found.desired_state is not None and found.desired_state.state is RunState.STOPPED and (living := _living(found)):
        return f"not ended yet: {_some(living)}"
    if found.outdated:
        return f"still to be replaced: consumers {', '.join(map(str, found.outdated))}"
    absent = [line for line in found.consumers if line.incarnation is None and line.needs_attention]
    return f"not joined yet: {_some(absent)}" if absent else "consumers start or end"


def _not_packed(found: GroupStatus) -> str:
    until = f", and only forced moves are made until {found.quiet_until}" if found.quiet_until else ""
    left = "" if found.rscore_left is None else f"; {found.rscore_left:.3f} Rscore may be moved within this hour"
    return f"the controller has not packed yet{until}{left}"


def end_now(desired: DesiredState | DesiredVersion | None) -> str:
    """How consumers end without a controller, where that is asked for."""
    is_stop = isinstance(desired, DesiredState) and desired.state is RunState.STOPPED
    return "; where none runs, `kgs control --end-now` ends the consumers" if is_stop else ""


class _Waiting:
    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._began = time.monotonic()
        self._console = Console(stderr=True)
        self._status = self._console.status("waiting") if self._console.is_terminal else None
        self._last_shown = ""
        self._refused: tuple[Mapping[TopicPartition, str], float] = ({}, 0.0)

    def __enter__(self) -> None:
        if self._status is not None:
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def note(self, what: str) -> None:
        """Say what is waited for, and wait a little; a TransientError when that has been for long enough."""
        if time.monotonic() - self._began > self._timeout_s:
            raise TransientError(f"not in {self._timeout_s:.0f} s: {what}: the request stands; see `kgs status`")
        if self._status is not None:
            self._status.update(f"waiting: {what}")
        elif what != self._last_shown:
            click.echo(f"waiting: {what}", err=True)
        self._last_shown = what
        time.sleep(LOOK_EVERY_S)

    def refuse(self, found: GroupStatus) -> None:
        """A PermanentError where a spare has not been able to open the same for too long."""
        refused = found.replacement.refused if found.replacement is not None and found.outdated else {}
        before, since = self._refused
        if refused.keys() != before.keys():
            self._refused = (refused, time.monotonic())
        elif refused and time.monotonic() - since >= REFUSED_FOR_S:
            raise PermanentError(
                f"group {found.group}: {found.replacement}. All consumers keep reading. Fix that, or `kgs replace` "
                "with the previous configuration"
            )


def _living(found: GroupStatus) -> list[ConsumerRow]:
    """Without those who have not reported for minutes: such a process has ended itself."""
    return [line for line in found.consumers if line.incarnation is not None and line.report_age_s is not None]


def _some(lines: list[ConsumerRow]) -> str:
    reasons = [f"consumer {line.consumer} ({line.state})" for line in lines[:_SHOWN]]
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"{', '.join(reasons)}{more}"


def _by_reason(waiting: Mapping[TopicPartition, str]) -> Iterator[str]:
    found = grouped((why, tp) for tp, why in sorted(waiting.items()))
    return (f"{ranges(tps)} ({printable(why)})" for why, tps in found.items())
