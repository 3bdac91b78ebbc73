"""`kgs status`: who reads what, how it is with every consumer, and what a change waits for. Reads only."""

import json
from pathlib import Path

import click
from rich.text import Text

from kgs_core.api.configuration import settings_of
from kgs_core.api.reports import status as group_status
from kgs_core.cli.group.status_table import status_table
from kgs_core.cli.options import config_option
from kgs_core.cli.terminal import Screen
from kgs_core.reporting.status import GroupStatus
from kgs_core.reporting.status_json import status_values

_WATCH_EVERY_S = 2.0
_WIDTH_IN_LOG = 160


@click.command()
@config_option
@click.option("--watch", is_flag=True, help="Again every two seconds, until interrupted.")
@click.option("--json", "json_", is_flag=True, help="JSON instead of tables; with --watch one object a line.")
def status(*, config_file: Path, watch: bool, json_: bool) -> None:
    """Show the group: who reads what and who will, each consumer's load, lag and last report, stopped partitions.

    Changes nothing, and works without a controller, which it says then: consumers keep reading what they own. A
    controller counts as down when no measurement has been published of late (by it or by `kgs monitor`).

    load is the write speed of what a consumer owns, as Kafka stores it; what it reads is counted uncompressed. Ages
    of reports are told by the broker's clock and this machine's. A narrow terminal shows fewer columns; into a pipe the
    environment variable COLUMNS counts, without it 160. With --watch a Kafka that is away is waited for.
    """
    if not watch:
        found = group_status(config_file)
        with StatusScreen(json_=json_, in_place=False) as screen:
            screen.show(found)
        return
    settings = settings_of(config_file)
    from kgs_core.runtime.group_status import GroupWatch
    from kgs_core.system.patience import try_until
    from kgs_core.system.shutdown import stop_on_signals

    with stop_on_signals() as stop, StatusScreen(json_=json_) as screen:
        watched = try_until(lambda: GroupWatch(settings), stop, screen.say)
        if watched is None:
            return
        with watched as group:
            while not stop.is_set:
                seen = try_until(group.look, stop, screen.say)
                if seen is not None:
                    screen.show(seen)
                    stop.wait(_WATCH_EVERY_S)


class StatusScreen(Screen):
    """Screen for the group."""

    def __init__(self, *, json_: bool, in_place: bool = True) -> None:
        super().__init__(_WIDTH_IN_LOG, in_place=in_place and not json_)
        self._json = json_
        self._once = not in_place

    def show(self, found: GroupStatus) -> None:
        """Show it."""
        if self._json:
            click.echo(json.dumps(status_values(found), indent=2 if self._once else None))
        elif self.live is not None:
            self.live.update(status_table(found), refresh=True)
        else:
            self.console.print(status_table(found))

    def say(self, text: str) -> None:
        """Say why there is nothing to show."""
        if self.live is not None:
            self.live.console.print(Text(text))
        else:
            click.echo(text, err=True)
