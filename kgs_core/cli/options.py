"""Options that several commands share."""

from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

_config = partial(
    click.option, "--config", "config_file", type=click.Path(path_type=Path), default="kgs.yaml", envvar="KGS_CONFIG"
)
config_option = _config(help="The configuration; `kgs example --all` explains every setting. Also from KGS_CONFIG.")
new_config_option = _config(help="File to write. Also from KGS_CONFIG.")
bootstrap_option = click.option(
    "--bootstrap-servers",
    metavar="HOST:PORT,...",
    help="Brokers, instead of a configuration.  [default: those of --config]",
)
"""For whoever has no kgs.yaml yet."""
local_brokers_option = click.option(
    "--bootstrap-servers", default="localhost:9092", help="Brokers, host:port,host:port."
)


def given_options(context: click.Context) -> set[str]:
    """Names of the parameters that were given, be it by the environment."""
    return {name for name in context.params if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
