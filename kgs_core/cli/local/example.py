"""`kgs example`: the files that people start from, out of the installation itself."""

from pathlib import Path

import click

from kgs_core.errors import ConfigError

FILES = Path(__file__).parents[2] / "files"
CONFIGURATION = "kgs.yaml"
_NAMES = {
    CONFIGURATION: "kgs.example.yaml",
    "dagster.yaml": "dagster.yaml",
    "workspace.yaml": "workspace.yaml",
    "rules.yaml": "rules.yaml",
    "dashboard": "dashboard.json",
}
SMALLEST = r"""group: flights
kafka: {bootstrap_servers: "localhost:9092"}
lake: {root: lake}
topics:
  - pattern: flights\..*
    format: string
"""


@click.command()
@click.argument("name", type=click.Choice(list(_NAMES)), default=CONFIGURATION)
@click.option("--all", "has_all", is_flag=True, help="Every setting of kgs.yaml, explained, with its default.")
def example(name: str, *, has_all: bool) -> None:
    """Print a file to start from. `kgs example` is the smallest kgs.yaml; `kgs init` writes one for your topics.

    dagster.yaml has settings for a Dagster instance on one machine (it belongs into DAGSTER_HOME), workspace.yaml is
    what `dagster dev -w` loads. rules.yaml has alerts for Prometheus, dashboard a dashboard for Grafana, as JSON.
    """
    if has_all and name != CONFIGURATION:
        raise ConfigError([f"--all: goes with {CONFIGURATION}: leave it out for {name}"])
    is_smallest = name == CONFIGURATION and not has_all
    click.echo(SMALLEST if is_smallest else (FILES / _NAMES[name]).read_text(), nl=False)
