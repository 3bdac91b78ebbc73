"""`kgs plan`: how many consumers the load needs, who reads what, and what the change costs. Changes nothing."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import click
from click.core import ParameterSource
from rich.console import Console

from kgs_core.api.plans import TARGET
from kgs_core.api.plans import plan as make_plan
from kgs_core.api.reports import status
from kgs_core.cli.group.plan_table import print_plan, print_waiting_plan
from kgs_core.cli.options import config_option
from kgs_core.cli.progress import progress_bar
from kgs_core.config.packing import MAX_CAPACITY
from kgs_core.errors import UnsafeError
from kgs_core.packing import ALGORITHMS


@click.command()
@config_option
@click.option(
    "--from",
    "from_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Recorded write speeds, of which the last count: JSON lines {"time": s, "speeds": {topic: {"0": bytes/s}}} or '
    "CSV with measurement,topic,partition,speed.",
)
@click.option(
    "--current",
    metavar="FILE|none",
    help='Who reads what now, as JSON {topic: {"0": consumer}}.  [default: what the controller of the group has '
    "decided last, if there is one; with --from none]",
)
@click.option(
    "--algorithm",
    metavar="NAME",
    help=f"Instead of packing.algorithm (default search): {', '.join(ALGORITHMS)}.",
)
@click.option(
    "--compare",
    type=click.Choice(["all"]),
    help="Show beside it what the other algorithms would do, and other settings of this one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--capacity",
    type=click.FloatRange(1, MAX_CAPACITY),
    metavar="BYTES_PER_S",
    help="Instead of packing.packing_capacity_bytes_per_s; makes a configuration unnecessary.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For nf, ff, bf, wf, which shuffle."
)
@click.option(
    "--show",
    metavar="ID",
    help="Show the plan of this name, which waits for `kgs approve` or is recommended, instead of making one.",
)
@click.pass_context
def plan(  # noqa: PLR0913 - one for each option
    context: click.Context,
    /,
    *,
    config_file: Path,
    from_file: Path | None,
    current: str | None,
    algorithm: str | None,
    compare: Literal["all"] | None,
    as_json: bool,
    capacity: float | None,
    seed: int,
    show: str | None,
) -> None:
    """Pack the partitions, and show the plan: consumers, loads, moves and their price (Rscore). Changes nothing.

    Without --from it measures the write speeds of the topics that the configuration names: over monitor.window_s, or
    at once where `kgs monitor` publishes. Without --capacity a configuration is needed in any case; its section
    `packing` also has the algorithm and the bounds.

    The same speeds, current assignment and seed give the same plan, byte for byte with --json: bytes/s are rounded to
    three decimals there, the Rscore to six.
    """
    if show is not None:
        _show(config_file, show, as_json=as_json)
        return
    named = context.get_parameter_source("config_file") is not ParameterSource.DEFAULT
    bar = progress_bar("measuring write speeds", Console(stderr=True)) if from_file is None else nullcontext()
    with bar as advance:
        found = make_plan(
            config_file if named else None,
            speeds=from_file,
            current=_current(current),
            compare=compare,
            algorithm=algorithm,
            capacity=capacity,
            seed=seed,
            progress=advance,
        )
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print_plan(found, found.group, left_out=found.left_out, learnt=found.learnt)


def _show(config_file: Path, plan_id: str, *, as_json: bool) -> None:
    found = status(config_file).plan
    if found is None or found.plan_id != plan_id:
        other = f"; plan {found.plan_id} waits" if found is not None else ""
        raise UnsafeError(f"plan {plan_id}: no such plan waits{other}: see `kgs status`")
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print_waiting_plan(found)


def _current(given: str | None) -> Path | str | None:
    if given is None:
        return TARGET
    return None if given == "none" else Path(given)
