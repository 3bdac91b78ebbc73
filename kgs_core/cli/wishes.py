"""`kgs pause`, `kgs resume`, `kgs stop`, `kgs replace`: what people wish of a running group."""

import getpass
import os
import socket
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

from kgs_core.cli.options import config_option
from kgs_core.config.file import load_settings
from kgs_core.config.fingerprint import config_hash
from kgs_core.control.overview import Overview
from kgs_core.errors import PermanentError, TransientError
from kgs_core.protocol import RunState, Wanted, Wish

_LOOK_EVERY_S = 0.5
_SHOWN = 3
F = TypeVar("F", bound=Callable[..., object])


def wait_options(command: F) -> F:
    """`--wait` and `--timeout`."""
    wait = click.option("--wait", is_flag=True, help="Return only when it has happened.")
    timeout = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=600.0,
        show_default=True,
        metavar="SECONDS",
        help="How long --wait waits; the wish stands even so. Exit status 1 then.",
    )
    return wait(timeout(command))


@click.command()
@config_option
@wait_options
def pause(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Let nobody read, until `kgs resume`.

    Every consumer finishes its batch in hand, lets go its partitions and stays, so that going on takes seconds. The
    wish is kept in Kafka: it also holds for a controller that is started later.
    """
    said = "paused: every consumer finishes its batch, then nobody reads until `kgs resume`; all processes stay"
    _Wisher(config_file, wait=wait, timeout_s=timeout_s).wish(RunState.PAUSED, said)


@click.command()
@config_option
@wait_options
def resume(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Let a paused or stopped group read again.

    Everybody gets the partitions that the group's Target gives them; missing consumers are started.
    """
    said = "resumed: missing consumers are started, and all partitions are read again"
    _Wisher(config_file, wait=wait, timeout_s=timeout_s).wish(RunState.RUNNING, said)


@click.command()
@config_option
@wait_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(*, config_file: Path, wait: bool, timeout_s: float, yes: bool) -> None:
    """End all consumers of the group, in order; the controller stays and starts them again at `kgs resume`.

    Every consumer finishes its batch in hand and ends. Nothing is lost by it: what comes meanwhile stays in Kafka, as
    long as its retention lets it.
    """
    wisher = _Wisher(config_file, wait=wait, timeout_s=timeout_s)
    if not yes:
        click.confirm(
            f"End all consumers of group {wisher.settings.group}? Nobody reads until `kgs resume`", abort=True
        )
    wisher.wish(RunState.STOPPED, "stopped: every consumer finishes its batch and ends; `kgs resume` starts them again")


@click.command()
@config_option
@wait_options
def replace(*, config_file: Path, wait: bool, timeout_s: float) -> None:
    """Replace, one after the other, consumers of another version of kgs or another configuration.

    Wanted are this installation's version and the configuration given here, which must be the one that the controller
    starts consumers with. Each is replaced by way of a spare, so partitions change hands without a gap. What the
    controller itself does (sections packing, membership, monitor) changes when `kgs control` is started anew.
    """
    _Wisher(config_file, wait=wait, timeout_s=timeout_s).replace()


class _Wisher:
    """Writes a wish, says what will come of it, and waits until it has."""

    def __init__(self, config_file: Path, *, wait: bool, timeout_s: float) -> None:
        self.settings = load_settings(config_file, os.environ)
        self._wait = wait
        self._timeout_s = timeout_s

    def wish(self, state: RunState, said: str) -> None:
        """Write a Wish."""
        wish = Wish(state, _who(), _now_ms())
        self._write(wish, said, lambda found: found.is_converged if found.wish == wish else None)

    def replace(self) -> None:
        """Write a Wanted."""
        wanted = Wanted(version("kgs"), config_hash(self.settings), _who(), _now_ms())
        said = (
            f"wanted: version {wanted.version}, configuration {wanted.config_hash[:8]}: consumers that differ are "
            "replaced one after the other"
        )

        def is_done(found: Overview) -> bool | None:
            return found.is_converged and not found.outdated if found.wanted == wanted else None

        self._write(wanted, said, is_done)

    def _write(self, wish: Wish | Wanted, said: str, is_done: Callable[[Overview], bool | None]) -> None:
        from kgs_core.adapters.group_topics import GroupTopic, GroupTopics
        from kgs_core.adapters.group_watch import GroupWatch
        from kgs_core.adapters.kafka_admin import KafkaAdmin
        from kgs_core.adapters.kafka_clients import admin_client
        from kgs_core.adapters.operator_pen import OperatorPen

        pen = OperatorPen(GroupTopics(self.settings, KafkaAdmin(admin_client(self.settings)), [GroupTopic.WISHES]))
        try:
            pen.write(wish)
        finally:
            pen.close()
        click.echo(f"group {self.settings.group}: {said}")
        if self._wait:
            with GroupWatch(self.settings) as group:
                wait_for(lambda: group.look(with_lake=False), is_done, self._timeout_s)
            click.echo("done")


def wait_for(look: Callable[[], Overview], is_done: Callable[[Overview], bool | None], timeout_s: float) -> None:
    """Returns once `is_done` is true of what `look` sees; it gives None when the wish is not the newest one any more.

    Raises:
        TransientError: not within `timeout_s` seconds; says what it still waits for.
        PermanentError: somebody wishes otherwise meanwhile.
    """
    console = Console(stderr=True)
    deadline = time.monotonic() + timeout_s
    with console.status("waiting") as shown:
        while not (done := is_done(found := look())):
            if done is None:
                by = found.wish.by if found.wish is not None else "somebody"
                raise PermanentError(
                    f"group {found.group}: another wish has come meanwhile (by {by}): see `kgs status`"
                )
            if time.monotonic() > deadline:
                raise TransientError(
                    f"group {found.group}: not in {timeout_s:g} s, {_lacks(found)}: the wish stands; see `kgs status`"
                )
            shown.update(f"waiting: {_lacks(found)}")
            time.sleep(_LOOK_EVERY_S)


def _lacks(found: Overview) -> str:
    """What is still to happen, in one line."""
    if not found.controller_is_heard:
        return "the controller is down, start `kgs control`"
    if found.waiting:
        first = [f"{tp} ({why})" for tp, why in sorted(found.waiting.items())[:_SHOWN]]
        more = f" and {len(found.waiting) - _SHOWN} more" if len(found.waiting) > _SHOWN else ""
        return f"not there yet: {', '.join(first)}{more}"
    if found.outdated:
        return f"still to be replaced: consumers {', '.join(map(str, found.outdated))}"
    return "consumers start or end"


def _who() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container's user need not have a name
        return f"{os.getuid()}@{socket.gethostname()}"


def _now_ms() -> int:
    return round(time.time() * 1000)
