"""`kgs approve`: carry out a plan that waits for a person."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.adapters.system.transform_folder import load_client_settings
from kgs_core.cli.group.operator_commands import who
from kgs_core.cli.group.operator_progress import lacks, wait_for
from kgs_core.cli.options import config_option

if TYPE_CHECKING:
    from kgs_core.config import Settings
    from kgs_core.reporting.status import GroupStatus
    from kgs_core.reporting.waiting_plan import WaitingPlan


@click.command()
@config_option
@click.argument("plan_id", metavar="ID")
@click.option(
    "--wait", is_flag=True, help="Return only when the plan is carried out; exit status 3 if it never will be."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait with --wait. Exit status 1 then; the approval stands.",
)
def approve(*, config_file: Path, plan_id: str, wait: bool, timeout_s: float) -> None:
    """Let the controller carry out plan ID, which waits since packing.apply is `approve`; `kgs status` shows it.

    Refused with exit status 3 when the plan has expired, or the group or its load has changed under it, or it would
    expire before anything may be moved. The controller looks once more itself. The approval is kept in Kafka, counts
    for this plan only, and twice is as once.
    """
    settings = load_client_settings(config_file, os.environ)
    from kgs_core.runtime.approve import approve_plan

    found = approve_plan(settings, plan_id, who())
    if found.plan is None:
        click.echo(f"group {settings.group}: plan {plan_id} was approved and carried out before")
        return
    said = "approved" if found.is_new else "approved before"
    until = settings.packing.forced_only_until(round(time.time() * 1000))
    later = f"; by packing.forced_moves_only_utc nothing is moved until {until}" if until else ""
    click.echo(f"group {settings.group}: {said}: {len(found.plan.moves):,} partitions are to be moved{later}")
    if wait:
        _wait(settings, found.plan, timeout_s)


def _wait(settings: "Settings", plan: "WaitingPlan", timeout_s: float) -> None:
    from kgs_core.runtime.approve import is_carried_out
    from kgs_core.runtime.group_status import GroupWatch

    with GroupWatch(settings) as watch:
        wait_for(lambda: watch.look(with_lake=False), lambda found: is_carried_out(found, plan), timeout_s, _lacking)
    click.echo("done: carried out, and every partition is where it belongs")


def _lacking(found: "GroupStatus") -> str:
    """What is waited for: of a plan that is held still, the controller."""
    if found.plan is None or not found.controller_is_heard:
        return lacks(found)
    until = f", and until {found.quiet_until} only what must move does" if found.quiet_until else ""
    return f"{found.plan}; it is not carried out yet{until}"
