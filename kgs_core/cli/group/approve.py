"""`kgs approve`: carry out a plan that waits for a person."""

import os
import time
from pathlib import Path

import click

from kgs_core.adapters.system.transform_folder import load_client_settings
from kgs_core.cli.group.operator_commands import who
from kgs_core.cli.options import config_option


@click.command()
@config_option
@click.argument("plan_id", metavar="ID")
def approve(*, config_file: Path, plan_id: str) -> None:
    """Let the controller carry out plan ID, which waits since packing.apply is `approve`; `kgs status` shows it.

    Refused with exit status 3 when the plan has expired, or the group or its load has changed under it. The controller
    looks once more itself. The approval is kept in Kafka, counts for this plan only, and twice is as once.
    """
    settings = load_client_settings(config_file, os.environ)
    from kgs_core.runtime.approve import approve_plan

    found = approve_plan(settings, plan_id, who())
    if found.plan is None:
        click.echo(f"group {settings.group}: plan {plan_id} was approved and carried out before")
        return
    said = "approved" if found.is_new else "approved before"
    wait = settings.packing.forced_only_until(round(time.time() * 1000))
    later = f"; by packing.forced_moves_only_utc nothing is moved until {wait}" if wait else ""
    click.echo(f"group {settings.group}: {said}: {len(found.plan.moves):,} partitions are to be moved{later}")
