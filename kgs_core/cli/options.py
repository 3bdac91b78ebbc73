"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    """`--config FILE`."""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        default="kgs.yaml",
        show_default=True,
        envvar="KGS_CONFIG",
        help="The configuration; `kgs example --all` explains every setting. Also from KGS_CONFIG.",
    )(command)
