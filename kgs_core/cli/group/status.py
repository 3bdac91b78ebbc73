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
@click.option("--watch", is_flag=True, help="Repeat every two seconds, until interrupted.")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of tables; with --watch one object a line.")
def status(*, config_file: Path, watch: bool, json_: bool) -> None:
    """Show the group: who reads what and who will, each consumer's load, lag and last report, stopped partitions.

    Changes nothing. Works without a controller, and reports that: consumers keep reading what they own. A controller
    counts as down if neither it nor `kgs monitor` has published a measurement recently.

    "load" is the write speed of a consumer's partitions, as Kafka stores it; "reads" is uncompressed. Ages of reports
    compare the broker's clock with this machine's. A narrow terminal shows fewer columns; in a pipe the width is the
    environment variable COLUMNS, or 160. With --watch the command waits while Kafka is unavailable.
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
