"""`kgs plan`: how many consumers the load needs, who reads what, and what the change costs."""

import json
from collections.abc import Container
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import click
from rich.console import Console

from kgs_core.api.plans import TARGET
from kgs_core.api.plans import plan as make_plan
from kgs_core.cli.group.operator_commands import Operator, wait_options
from kgs_core.cli.group.plan_table import print_group, print_plan
from kgs_core.cli.options import bootstrap_option, config_option, given_options
from kgs_core.cli.progress import progress_bar
from kgs_core.config.classes import MAX_CAPACITY
from kgs_core.packing import ALGORITHMS

_OWN = {"from_file": "--from", "current": "--current", "algorithm": "--algorithm", "capacity": "--capacity"}
"""Where the controller goes by its own settings."""
_ONLY_WITH_APPLY = {"yes": "--yes", "wait": "--wait", "timeout_s": "--timeout"}
_OF_ANOTHER_GROUP = {"from_file": "--from", "current": "--current", "applies": "--apply"}


@click.command()
@config_option
@click.option(
    "--from",
    "from_file",
    metavar="FILE",
    help='Recorded write speeds; the last ones count: JSON lines {"time": s, "speeds": {topic: {"0": bytes/s}}}.',
)
@click.option(
    "--current",
    metavar="FILE|none",
    help='Who reads what now, as JSON {topic: {"0": consumer}}.  [default: what the controller decided '
    "last, if there is one; with --from none]",
)
@click.option(
    "--algorithm", metavar="NAME", help=f"Instead of packing.algorithm (default search): {', '.join(ALGORITHMS)}."
)
@click.option(
    "--compare",
    type=click.Choice(["all"]),
    help="Also show what the other algorithms, and other settings of this one, would do.",
)
@click.option(
    "--group",
    "of_group",
    metavar="NAME",
    help="Any consumer group, also of programs other than kgs: what is written to each member's partitions, what it "
    "reads, and a balanced assignment. With --bootstrap-servers no kgs.yaml is needed.",
)
@bootstrap_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--capacity",
    type=click.FloatRange(1, MAX_CAPACITY),
    metavar="BYTES_PER_S",
    help="Instead of packing.packing_capacity_bytes_per_s.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of nf, ff, bf and wf, which shuffle.")
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="Have the controller pack again, by its own settings, and carry out the result once.",
)
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@wait_options
@click.pass_context
def plan(  # noqa: PLR0913 - one for each option
    context: click.Context,
    /,
    *,
    config_file: Path,
    from_file: str | None,
    current: str | None,
    algorithm: str | None,
    compare: Literal["all"] | None,
    of_group: str | None,
    bootstrap_servers: str | None,
    as_json: bool,
    capacity: float | None,
    seed: int,
    applies: bool,
    yes: bool,
    wait: bool,
    timeout_s: float,
) -> None:
    """Pack the partitions, and show the plan: consumers, loads, moves and their price (Rscore).

    Changes nothing without --apply. --yes, --wait and --timeout need --apply.

    Without --from it measures the write speeds of the configured topics over monitor.window_s, or takes those that
    `kgs monitor` publishes. Algorithm and bounds come from section `packing` of the configuration. Without a capacity
    there or in --capacity, the group's learnt capacity counts, or a short measurement of this machine.

    \b
    kgs plan --compare all
    kgs plan --group orders-app --bootstrap-servers broker:9092

    The same speeds, current assignment and seed give the same plan. With --json it is the same byte for byte: bytes/s
    are rounded to three decimals, the Rscore to six.
    """  # noqa: D301 - \b is click's
    named = given_options(context)
    _check_combination(named, of_group=of_group is not None, applies=applies)
    bar = progress_bar("measuring write speeds", Console(stderr=True)) if from_file is None else nullcontext()
    with bar as advance:
        found = make_plan(
            config_file if "config_file" in named and bootstrap_servers is None else None,
            group=of_group,
            bootstrap_servers=bootstrap_servers,
            speeds=from_file,
            current=_current(current),
            compare=compare,
            algorithm=algorithm,
            capacity=capacity,
            seed=seed,
            progress=advance,
        )
    if not as_json:
        if found.seen is not None:
            print_group(found.seen, found, found.advice)
        print_plan(found, found.group, capacity=found.learnt, left_out=found.left_out, is_ours=found.seen is None)
    came_of_it = {}
    if applies:
        if not yes:
            click.confirm("Carry out what the packer wants now?", abort=True, err=True)
        operator = Operator(config_file, wait=wait, timeout_s=timeout_s, as_json=as_json)
        came_of_it = {"applied": operator.apply_plan()}
    if as_json:
        click.echo(json.dumps(found.to_dict() | came_of_it, indent=2, allow_nan=False))


def _check_combination(named: Container[str], *, of_group: bool, applies: bool) -> None:
    refused = {option: "not with --apply" for name, option in _OWN.items() if applies and name in named}
    refused |= {
        option: "not without --apply" for name, option in _ONLY_WITH_APPLY.items() if not applies and name in named
    }
    refused |= {option: "not with --group" for name, option in _OF_ANOTHER_GROUP.items() if of_group and name in named}
    if not of_group and "bootstrap_servers" in named:
        refused["--bootstrap-servers"] = "not without --group"
    for option, why in refused.items():
        raise click.UsageError(f"{option}: {why}")


def _current(given: str | None) -> Path | str | None:
    if given is None:
        return TARGET
    return None if given == "none" else Path(given)
