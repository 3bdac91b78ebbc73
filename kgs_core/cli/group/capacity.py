"""`kgs capacity`: how much one consumer can read, and what to write into kgs.yaml."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.config.packing import CONSUMER_SHARE
from kgs_core.errors import PermanentError
from kgs_core.monitor.speeds.rates import RateDistribution, spread

if TYPE_CHECKING:
    from kgs_core.runtime.capacity_test import CapacityResult

_BAR_WIDTH = 40
_MB = 1e6


@click.command()
@config_option
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    help="How long to read. If the backlog ends sooner, it is read again, into new tables.",
)
@click.option("--json", "json_", is_flag=True, help="Print JSON, with the figures of every cycle, instead of text.")
def capacity(*, config_file: Path, seconds: float, json_: bool) -> None:
    """Measure what one consumer can read at full speed from a backlog, in bytes/s as the log stores them.

    Reads the configured topics from their start into tables in a folder _kgs_capacity_... under the lake's root, which
    it removes at the end. Tables, positions and offsets of the group stay untouched. Prints the most frequent rate
    of its cycles, and the setting for kgs.yaml.
    """
    settings = settings_of(config_file)
    from kgs_core.cli.progress import progress_bar
    from kgs_core.runtime.capacity_test import run_capacity_test
    from kgs_core.system.shutdown import stop_on_signals
    from kgs_core.system.transform_folder import use_folder_of

    use_folder_of(config_file, settings)
    with stop_on_signals() as stop, progress_bar("reading", Console(stderr=True)) as progress:
        result = run_capacity_test(settings, seconds, progress, stop)
    if not result.cycles:
        why = "ended before anything was read" if stop.is_set else "nothing was read in time: raise --seconds"
        raise PermanentError(f"capacity: {why}")
    found = spread(result.rates)
    if json_:
        click.echo(json.dumps(_as_json(result, found)))
    else:
        _print(result, found)


def settings_for(mode_bytes_per_s: float) -> dict[str, int]:
    """What to write down for a measured rate, stored bytes/s, to three digits (more would not be measured)."""
    return {"consumer_capacity_bytes_per_s": int(float(f"{mode_bytes_per_s * CONSUMER_SHARE:.3g}"))}


def _print(result: "CapacityResult", found: RateDistribution) -> None:
    average = result.backlog_bytes / result.partitions
    click.echo(
        f"backlog {result.backlog_bytes / _MB:.1f} MB stored, on average {average / _MB:.2f} MB in each of "
        f"{result.partitions} partitions, into {result.tables} tables"
    )
    consumed = sum(cycle.consumed_bytes for cycle in result.cycles)
    stored = sum(cycle.stored_bytes for cycle in result.cycles)
    click.echo(
        f"{len(result.cycles)} cycles in {result.passes} passes, {len(result.rates)} counted; "
        f"a stored byte is {consumed / stored:.2f} bytes read"
    )
    highest = max(count for _, _, count in found.bins)
    for low, high, count in found.bins:
        bar = "█" * round(_BAR_WIDTH * count / highest)
        click.echo(f"  {low / _MB:8.2f} - {high / _MB:8.2f} MB/s  {count:5d}  {bar}")
    percentiles = "  ".join(f"p{p} {rate / _MB:.2f}" for p, rate in found.percentiles.items())
    click.echo(f"MB/s stored: mode {found.mode / _MB:.2f}  {percentiles}")
    if not result.is_saturated:
        click.echo(
            "The backlog is too small: no cycle was full, so this is less than the consumer could read. Leave "
            "consumer_capacity_bytes_per_s out of kgs.yaml: the group learns it.",
            err=True,
        )
        return
    click.echo("\nFor kgs.yaml:\n\npacking:")
    for key, value in settings_for(found.mode).items():
        click.echo(f"  {key}: {value}")


def _as_json(result: "CapacityResult", found: RateDistribution) -> dict[str, Any]:
    return {
        "mode_bytes_per_s": found.mode,
        "percentiles_bytes_per_s": {str(p): rate for p, rate in found.percentiles.items()},
        "histogram": [{"from": low, "to": high, "cycles": count} for low, high, count in found.bins],
        "saturated": result.is_saturated,
        "backlog_bytes": result.backlog_bytes,
        "partitions": result.partitions,
        "tables": result.tables,
        "passes": result.passes,
        "packing": settings_for(found.mode),
        "cycles": [
            {
                "seconds": cycle.seconds,
                "records": cycle.records,
                "stored_bytes": cycle.stored_bytes,
                "consumed_bytes": cycle.consumed_bytes,
                "counted": cycle.is_full or not result.is_saturated,
            }
            for cycle in result.cycles
        ],
    }
