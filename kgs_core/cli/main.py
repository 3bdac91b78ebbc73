"""The entry point of `kgs`: commands, and errors turned into one line and an exit code."""

import logging
import sys
from typing import Any

import click

from kgs_core.adapters.system.failpoints import crash_plan
from kgs_core.cli.bench.capacity import capacity
from kgs_core.cli.bench.command import bench_group
from kgs_core.cli.group.approve import approve
from kgs_core.cli.group.bill import bill
from kgs_core.cli.group.consume import consume
from kgs_core.cli.group.control import control
from kgs_core.cli.group.metrics import metrics
from kgs_core.cli.group.monitor import monitor
from kgs_core.cli.group.operator_commands import pause, replace, resume, stop
from kgs_core.cli.group.plan import plan
from kgs_core.cli.group.status import status
from kgs_core.cli.lake.adopt import adopt
from kgs_core.cli.lake.audit import audit
from kgs_core.cli.lake.commands import accept_loss, accept_topic, maintain
from kgs_core.cli.lake.materialize import materialize
from kgs_core.cli.lake.redrive import redrive
from kgs_core.cli.lake.register import register
from kgs_core.cli.lake.schema import schema_group
from kgs_core.cli.local.demo import demo
from kgs_core.cli.local.example import example
from kgs_core.cli.local.generate import generate
from kgs_core.cli.local.kafka import kafka_group, topics_group
from kgs_core.cli.local.prepare import prepare
from kgs_core.cli.simulate.command import simulate
from kgs_core.errors import ConfigError, KgsError


class KgsGroup(click.Group):
    """A group of commands whose errors are `error: <where>: <what>: <fix>`, never a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and end the process with the error's exit code."""
        try:
            return super().main(*args, **kwargs)
        except KgsError as e:
            # What follows the first line, the end of a log say, is no error of its own
            for problem in e.problems if isinstance(e, ConfigError) else (str(e),):
                click.echo(f"error: {problem}", err=True)
            sys.stdout.flush()
            sys.exit(e.exit_code)


@click.group(cls=KgsGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="Logs go to stderr.",
)
@click.version_option(package_name="kgs")
def cli(log_level: str) -> None:
    """Kafka topics into Delta Lake tables, exactly once, with as few PySpark consumers as the load needs."""
    crash_plan()  # one that cannot be carried out is refused before anything is started
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kgs_core").setLevel(log_level.upper())


for command in (
    demo,
    example,
    consume,
    control,
    status,
    metrics,
    pause,
    resume,
    stop,
    replace,
    plan,
    approve,
    simulate,
    bill,
    audit,
    maintain,
    accept_loss,
    accept_topic,
    adopt,
    schema_group,
    redrive,
    materialize,
    register,
    kafka_group,
    topics_group,
    generate,
    prepare,
    bench_group,
    monitor,
    capacity,
):
    cli.add_command(command)


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="kgs", standalone_mode=True)
