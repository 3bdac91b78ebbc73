"""The entry point of `kgs`: commands, and errors turned into one line and an exit code."""

import logging
import sys
from typing import Any

import click

from kgs_core.cli.audit import audit
from kgs_core.cli.bench import bench_group
from kgs_core.cli.capacity import capacity
from kgs_core.cli.consume import consume
from kgs_core.cli.control import control
from kgs_core.cli.demo import demo
from kgs_core.cli.generate import generate
from kgs_core.cli.kafka import kafka_group, topics_group
from kgs_core.cli.lake import accept_loss, accept_topic, maintain
from kgs_core.cli.monitor import monitor
from kgs_core.cli.plan import plan
from kgs_core.cli.prepare import prepare
from kgs_core.cli.simulate import simulate
from kgs_core.cli.status import status
from kgs_core.cli.wishes import pause, replace, resume, stop
from kgs_core.errors import KgsError


class KgsGroup(click.Group):
    """A group of commands whose errors are `error: <where>: <what>: <fix>`, never a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and end the process with the error's exit code."""
        try:
            return super().main(*args, **kwargs)
        except KgsError as e:
            for line in str(e).splitlines():
                click.echo(f"error: {line}", err=True)
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
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kgs_core").setLevel(log_level.upper())


for command in (
    demo,
    consume,
    control,
    status,
    pause,
    resume,
    stop,
    replace,
    plan,
    simulate,
    audit,
    maintain,
    accept_loss,
    accept_topic,
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
