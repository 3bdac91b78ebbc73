"""`kgs monitor`: measures write speeds, shows and publishes them."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from kgs_core.api.configuration import settings_of
from kgs_core.cli.group.speed_table import as_json, speed_table
from kgs_core.cli.options import config_option
from kgs_core.cli.terminal import Screen

if TYPE_CHECKING:
    from kgs_core.config import Settings
    from kgs_core.monitor.speeds import Measurement
    from kgs_core.system.shutdown import StopFlag

_IN_LOG_S = 5.0
_WIDTH_IN_LOG = 140


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Print one measurement over a whole window and end; publish nothing.")
@click.option("--json", "json_", is_flag=True, help="Print JSON lines instead of the table.")
@click.option(
    "--publish/--no-publish",
    default=True,
    help="Write every measurement to the topic kgs.<group>.monitor.writeSpeed, created if missing.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, help="Number of partitions to show.")
def monitor(*, config_file: Path, once: bool, json_: bool, publish: bool, top: int) -> None:
    """Show the write speed of every partition, in bytes/s as the log stores them, largest first.

    Speeds are averages over monitor.window_s (30 s by default); a step of a topic's load is followed at once. An
    unknown speed shows its reason instead of a number. Reads sizes and offsets, and records only if the cluster does
    not report sizes.
    """
    settings = settings_of(config_file)
    from kgs_core.system.shutdown import stop_on_signals

    with stop_on_signals() as stop:
        if once:
            _show_one(settings, stop, top, json_=json_)
            return
        from kgs_core.monitor.kafka.monitor import Monitor

        with Monitor(settings, publish=publish) as running, MonitorScreen(top, json_=json_) as screen:
            if publish:
                running.rebuild()
            running.run(stop, screen.show)


def _show_one(settings: "Settings", stop: "StopFlag", top: int, *, json_: bool) -> None:
    from kgs_core.cli.progress import progress_bar
    from kgs_core.monitor.kafka.monitor import measure

    with progress_bar("measuring", Console(stderr=True)) as progress:
        found = measure(settings, progress, stop)
    with MonitorScreen(top, json_=json_, in_place=False) as screen:
        screen.show(found)


class MonitorScreen(Screen):
    """Screen for measurements; where they are not shown in place, one every few seconds."""

    def __init__(self, top: int, *, json_: bool, in_place: bool = True) -> None:
        super().__init__(_WIDTH_IN_LOG, in_place=in_place and not json_)
        self._top = top
        self._json = json_
        self._due_s = float("-inf")

    def show(self, measurement: "Measurement") -> None:
        """Show one, if it is time for it."""
        if self._json:
            click.echo(json.dumps(as_json(measurement)))
        elif self.live is not None:
            self.live.update(speed_table(measurement, self._top), refresh=True)
        elif time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + _IN_LOG_S
            self.console.print(speed_table(measurement, self._top), highlight=False)
