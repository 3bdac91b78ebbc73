"""`kgs plan`: how many consumers the load needs, who reads what, and what the change costs. Changes nothing."""

import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import click
from click.core import ParameterSource

from kgs_core.adapters.system.files import read_text
from kgs_core.cli.group.plan_table import print_plan
from kgs_core.cli.options import config_option
from kgs_core.config import ALGORITHM_NAMES, AlgorithmName, PackingSettings, resolve_tables
from kgs_core.config.file import load_settings
from kgs_core.config.packing import MAX_CAPACITY
from kgs_core.errors import ConfigError, PermanentError
from kgs_core.monitor.recorded import parse_assignment, parse_measurements
from kgs_core.packing import FRONT, WEIGHING, setting_name
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Group, Plan, make_plan
from kgs_core.planning.rebalance_budget import moved_within_an_hour
from kgs_core.planning.triggers import NoRun, Watched, exit_conditions, judge
from kgs_core.reporting.plan_json import plan_json


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The command line. Attributes are named after the options; None: not given."""

    config_file: Path
    from_file: Path | None
    current: str | None
    algorithm: AlgorithmName | None
    compare: str | None
    as_json: bool
    capacity: float | None
    seed: int


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
@click.option("--algorithm", type=click.Choice(ALGORITHM_NAMES), help="Instead of packing.algorithm (default search).")
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
@click.pass_context
def plan(context: click.Context, /, **options: Any) -> None:
    """Pack the partitions, and show the plan: consumers, loads, moves and their price (Rscore). Changes nothing.

    Without --from it measures the write speeds of the topics that the configuration names: over monitor.window_s, or
    at once where `kgs monitor` publishes. Without --capacity a configuration is needed in any case; its section
    `packing` also has the algorithm and the bounds.

    The same speeds, current assignment and seed give the same plan, byte for byte with --json: bytes/s are rounded to
    three decimals there, the Rscore to six.
    """
    given = PlanOptions(**options)
    named = context.get_parameter_source("config_file") is not ParameterSource.DEFAULT
    settings = _packing_settings(given, config_is_named=named)
    load = _load(given)
    group, moved_rscore = _group(given)
    compare = (*ALGORITHM_NAMES, *_settings_to_weigh(settings)) if given.compare else ()
    found = make_plan(load, group, settings, lambda: Random(given.seed), compare)  # noqa: S311 - no secret
    found = replace(found, held_back=_held_back(found, load, group, moved_rscore, settings))
    if given.as_json:
        click.echo(plan_json(found))
    else:
        print_plan(found, group, left_out=len(group.current.keys() - found.target.keys()))


def _settings_to_weigh(settings: PackingSettings) -> list[str]:
    """Other settings, along the front."""
    if settings.algorithm not in WEIGHING:
        return []
    return [setting_name(settings.algorithm, worth) for worth in FRONT if worth != settings.worth]


def _packing_settings(given: PlanOptions, *, config_is_named: bool) -> PackingSettings:
    """Section `packing` of the configuration, if there is one, with what the command line says instead."""
    if given.capacity is not None and math.isnan(given.capacity):
        raise ConfigError(["plan: --capacity nan: give bytes/s, 1 or more"])
    if config_is_named or given.config_file.exists():
        packing = load_settings(given.config_file, os.environ).packing
    elif given.capacity is not None:
        packing = PackingSettings()
    else:
        raise ConfigError([f"plan: no capacity: give --capacity, or --config FILE ({given.config_file} is not there)"])
    changes: dict[str, object] = {}
    if given.capacity is not None:
        changes["packing_capacity_bytes_per_s"] = given.capacity
        changes["consumer_capacity_bytes_per_s"] = max(given.capacity, packing.consumer_capacity_bytes_per_s)
    if given.algorithm is not None:
        changes["algorithm"] = given.algorithm
    return packing.model_copy(update=changes)


def _load(given: PlanOptions) -> Load:
    """Recorded speeds, or measured ones: over a window, or at once where a monitor publishes."""
    if given.from_file is not None:
        return Load(parse_measurements(read_text(given.from_file), str(given.from_file))[-1].speeds)
    if not given.config_file.exists():
        raise ConfigError(
            [f"plan: nothing to measure: give --config FILE ({given.config_file} is not there), or --from FILE"]
        )
    settings = load_settings(given.config_file, os.environ)
    resolve_tables(settings, [rule.topic for rule in settings.topics if rule.topic])  # consumers would refuse it
    from rich.console import Console

    from kgs_core.adapters.monitor.load import measured_load
    from kgs_core.adapters.monitor.monitor import measure
    from kgs_core.cli.progress import progress_bar

    with progress_bar("measuring write speeds", Console(stderr=True)) as advance:
        measurement = measure(settings, advance)
    resolve_tables(settings, {tp.topic for tp in measurement.speeds})
    load = measured_load(settings, measurement)
    if not load.speeds and not load.unknown:
        raise PermanentError("plan: no topic matches the configuration: create the topics, or mend `topics`")
    return load


def _held_back(plan: Plan, load: Load, group: Group, moved_rscore: float, settings: PackingSettings) -> str:
    """Whether the controller would let the plan wait, if the group were in order; empty: it would not."""
    watched = Watched(
        target=group.current,
        current=group.current,
        joined=frozenset(group.current.values()) | group.spares,
        failing=group.set_aside,
        since_packing_s=math.inf,
        moved_rscore=moved_rscore,
    )
    decision = judge(plan, exit_conditions(load, watched, settings), load, watched, settings)
    return str(decision.held_back) if isinstance(decision, NoRun) and decision.held_back else ""


def _group(given: PlanOptions) -> tuple[Group, float]:
    """The consumers as they are, and the Rscore of what has moved within the last hour.

    They are as a file says, or as the newest Target; recorded speeds are of no group that runs.
    """
    if given.current == "none" or (given.current is None and given.from_file is not None):
        return Group(), 0.0
    if given.current is not None:
        return Group(parse_assignment(read_text(Path(given.current)), given.current)), 0.0
    from kgs_core.runtime.group_status import load_target

    settings = load_settings(given.config_file, os.environ)
    target = load_target(settings)
    if target is None:
        return Group(highest=settings.membership.highest_consumer), 0.0
    moved_rscore = moved_within_an_hour(target.history, round(time.time() * 1000))
    spares = frozenset(target.spares)
    group = Group(
        current=target.assignment,
        spares=spares,
        set_aside=frozenset(target.set_aside),
        standing=spares,
        highest=settings.membership.highest_consumer,
    )
    return group, moved_rscore
