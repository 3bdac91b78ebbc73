"""The entry point of `kgs`: commands, and errors turned into one line and an exit code."""

import atexit
import faulthandler
import logging
import os
import sys
from collections import UserDict
from importlib import import_module
from typing import Any

import click

from kgs_core.errors import ConfigError, KgsError
from kgs_core.system.failpoints import crash_plan

_COMMANDS = {
    "demo": "local.demo:demo",
    "example": "local.example:example",
    "init": "local.init:init",
    "consume": "group.consume:consume",
    "control": "group.control:control",
    "status": "group.status:status",
    "metrics": "group.metrics:metrics",
    "pause": "group.operator_commands:pause",
    "resume": "group.operator_commands:resume",
    "stop": "group.operator_commands:stop",
    "replace": "group.operator_commands:replace",
    "plan": "group.plan:plan",
    "simulate": "simulate.command:simulate",
    "bill": "group.bill:bill",
    "audit": "lake.audit:audit",
    "complete": "lake.complete:complete",
    "check": "lake.check:check_group",
    "maintain": "lake.commands:maintain",
    "accept-loss": "lake.commands:accept_loss",
    "accept-topic": "lake.commands:accept_topic",
    "adopt": "lake.adopt:adopt",
    "schema": "lake.schema:schema_group",
    "redrive": "lake.redrive:redrive",
    "erase": "lake.erase:erase",
    "materialize": "lake.materialize:materialize",
    "register": "lake.register:register",
    "kafka": "local.kafka:kafka_group",
    "topics": "local.kafka:topics_group",
    "generate": "local.generate:generate",
    "prepare": "local.prepare:prepare",
    "monitor": "group.monitor:monitor",
    "capacity": "group.capacity:capacity",
}
"""Name -> module under `kgs_core.cli`, and its command there."""
_NOT_SAID = 120
"""Exit status where the last words could not be written; Python's own."""


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


class _Commands(UserDict[str, Any]):
    """Commands by name, each imported when it is asked for: to import all takes half of what the start of one does."""

    def __getitem__(self, name: str) -> click.Command:
        module, _, attribute = super().__getitem__(name).partition(":")
        command: click.Command = getattr(import_module(f"kgs_core.cli.{module}"), attribute)
        return command


@click.group(
    cls=KgsGroup,
    commands=_Commands(_COMMANDS),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    help="Logs go to stderr.",
)
@click.version_option(package_name="kgs")
def cli(log_level: str) -> None:
    """Stream Kafka topics into Delta Lake tables, exactly once, with as few PySpark consumers as the load needs."""
    crash_plan()  # one that cannot be carried out is refused before anything is started
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kgs_core").setLevel(log_level.upper())


def main() -> None:
    """Entry point of the console script."""
    faulthandler.enable()  # a crash in a library's code says where
    end = _End()
    atexit.register(end)
    try:
        cli(prog_name="kgs", standalone_mode=True)
    except SystemExit as e:
        end.code = e.code if isinstance(e.code, int) else int(e.code is not None)
        raise


class _End:
    """The end of the process, the last that is called at exit.

    Python would take itself apart after it, and end threads that are still in library code (a commit or a request
    without an answer) wherever they stand: that crashes the process after its work is done (CPython gh-87135, mended in
    3.14), and who waits for it would take it for failed.

    Attributes:
        code: exit status; 1 is that of an exception which was not foreseen.
    """

    def __init__(self) -> None:
        self.code = 1

    def __call__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # nobody reads it any more, or the disk is full
                self.code = self.code or _NOT_SAID
        os._exit(self.code)
