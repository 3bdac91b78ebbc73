"""`kgs pause`, `kgs resume`, `kgs stop`, `kgs replace`, and what `kgs plan --apply` asks for: what people want."""

import getpass
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click

from kgs_core.api.configuration import settings_of
from kgs_core.cli.group.operator_progress import applied, end_now, has_come, is_applied, is_replaced, wait_for
from kgs_core.cli.options import config_option
from kgs_core.config.settings import config_hash
from kgs_core.errors import PortError
from kgs_core.group.membership.membership import FENCE_FACTOR
from kgs_core.group.protocol import DesiredState, DesiredVersion, RunState
from kgs_core.reporting.status import GroupStatus
from kgs_core.system.shutdown import StopFlag

F = TypeVar("F", bound=Callable[..., object])


def wait_options(command: F) -> F:
    """`--wait` and `--timeout`."""
    wait = click.option(
        "--wait", is_flag=True, help="Wait until it is done; without this, return once it is requested."
    )
    timeout = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=600.0,
        metavar="SECONDS",
        help="How long to wait for Kafka and, with --wait, for the outcome. Then exit status 1; the request stays.",
    )
    return wait(timeout(command))


@click.command()
@config_option
@wait_options
def pause(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Stop all reading until `kgs resume`; consumers keep running.

    Every consumer finishes its batch, releases its partitions and keeps running, so that resuming takes seconds. The
    request is kept in Kafka: a controller that starts later also obeys it.
    """
    asked = "pause: every consumer finishes its batch; then none reads until `kgs resume`, and all processes stay"
    Operator(config_file, wait=wait, timeout_s=timeout_s).set_state(RunState.PAUSED, asked)


@click.command()
@config_option
@wait_options
def resume(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Let a paused or stopped group read again.

    Consumers get the partitions of the group's Target; missing consumers are started.
    """
    asked = "resume: missing consumers are to be started, and all partitions to be read again"
    Operator(config_file, wait=wait, timeout_s=timeout_s).set_state(RunState.RUNNING, asked)


@click.command()
@config_option
@wait_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(*, config_file: Path, wait: bool, timeout_s: float, yes: bool) -> None:
    """End all consumers of the group; the controller keeps running, and starts them again at `kgs resume`.

    Every consumer finishes its batch and ends. Nothing is lost: records that arrive meanwhile stay in Kafka for its
    retention.
    """
    operator = Operator(config_file, wait=wait, timeout_s=timeout_s)
    if not yes:
        click.confirm(
            f"End all consumers of group {operator.settings.group}? No consumer reads until `kgs resume`", abort=True
        )
    asked = "stop: every consumer is to finish its batch and to end; `kgs resume` starts them again"
    operator.set_state(RunState.STOPPED, asked)


@click.command()
@config_option
@wait_options
def replace(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Replace consumers of another version of kgs or another configuration, one after the other.

    The new ones have this installation's version and the configuration given here, which must be the controller's. A
    spare opens every partition before a consumer releases it; if it cannot, the replacement stops and reports why. The
    controller's own sections (packing, membership, monitor) change when `kgs control` is restarted.
    """
    Operator(config_file, wait=wait, timeout_s=timeout_s).replace()


class Operator:
    """Writes what is asked for, says so, and waits until it has come true."""

    def __init__(self, config_file: Path, *, wait: bool, timeout_s: float, as_json: bool = False) -> None:
        self._tell = partial(click.echo, err=as_json)  # what a program reads is JSON only
        self.settings = settings_of(config_file)
        self._wait = wait
        self._timeout_s = timeout_s

    def set_state(self, state: RunState, asked: str) -> None:
        """Write a desired state."""
        desired = DesiredState(state, who(), _now_ms())
        fenced_after_s = FENCE_FACTOR * self.settings.membership.suspect_after_s

        def is_done(found: GroupStatus) -> bool | None:
            return has_come(found, state, fenced_after_s) if found.desired_state == desired else None

        self._write(desired, asked, is_done)

    def replace(self) -> None:
        """Write a desired version."""
        wanted = DesiredVersion(version("kgs"), config_hash(self.settings), who(), _now_ms())
        asked = (
            f"version {wanted.version}, configuration {wanted.config_hash[:8]}: consumers that differ are to be "
            "replaced one after the other"
        )
        self._write(wanted, asked, lambda found: is_replaced(found) if found.wanted == wanted else None)

    def apply_plan(self) -> dict[str, Any] | None:
        """Ask for what the packer wants; what came of it as values for JSON, None: nobody waits for that."""
        now_ms = _now_ms()
        request = DesiredState(RunState.RUNNING, who(), now_ms, apply_ms=now_ms)
        until = self.settings.packing.forced_only_until(now_ms)
        later = f"; by packing.apply only forced moves are made until {until}" if until else ""
        asked = f"plan: the controller is to pack again and carry out the result once{later}"
        found = self._write(request, asked, lambda found: is_applied(found, request))
        if found is None:
            return None
        change = applied(found)
        if change is None:
            self._tell("nothing was moved: there is no better packing")
            return {"moved": 0}
        self._tell(f"{change.moved:,} partitions moved, Rscore {change.rscore:.3f}, {change.consumers} consumers")
        return {"moved": change.moved, "rscore": change.rscore, "consumers": change.consumers}

    def _write(
        self, desired: DesiredState | DesiredVersion, asked: str, is_done: Callable[[GroupStatus], bool | None]
    ) -> GroupStatus | None:
        from kgs_core.runtime.group_status import GroupWatch
        from kgs_core.system.patience import try_until

        never = StopFlag()
        deadline = time.monotonic() + self._timeout_s
        try_until(lambda: self._append(desired), never, _say, self._timeout_s)
        self._tell(f"group {self.settings.group}: asked for: {asked}")
        if not self._wait:
            self._note_absent_controller(desired)
            return None
        group = try_until(lambda: GroupWatch(self.settings), never, _say, max(0.0, deadline - time.monotonic()))
        if group is None:
            return None
        with group:
            left_s = max(0.0, deadline - time.monotonic())
            found = wait_for(lambda: group.look(with_lake=False), is_done, left_s)
        self._tell(f"done{_but(found)}")
        return found

    def _append(self, desired: DesiredState | DesiredVersion) -> None:
        """Twice does no harm: the newest one counts, and both say the same."""
        from kgs_core.group.topics.operator_topic import operator_writer

        with operator_writer(self.settings) as writer:
            if isinstance(desired, DesiredState) and desired.apply_ms is not None:
                writer.ask_for_plan(desired)
            else:
                writer.write(desired)

    def _note_absent_controller(self, desired: DesiredState | DesiredVersion) -> None:
        from kgs_core.runtime.group_status import hears_controller

        try:
            is_heard = hears_controller(self.settings)
        except PortError as e:
            _say(f"it is unknown whether a controller runs: {e}")
            return
        if not is_heard:
            _say(
                "no controller has published a measurement recently: nothing happens until one runs: check it, or "
                f"start `kgs control`{end_now(desired)}"
            )


def _but(found: GroupStatus) -> str:
    """What stands still all the same: nobody shall take that for reading."""
    still = {tp for line in found.consumers for tp in line.stopped}
    return f", but {len(still)} of {len(found.current)} partitions are stopped: see `kgs status`" if still else ""


def _say(text: str) -> None:
    click.echo(text, err=True)


def who() -> str:
    """Name of the person who asks, as `sam@laptop`."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container's user need not have a name
        return f"{os.getuid()}@{socket.gethostname()}"


def _now_ms() -> int:
    return round(time.time() * 1000)
