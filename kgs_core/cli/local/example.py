"""`kgs example`: the files that people start from, out of the installation itself."""

from pathlib import Path

import click

FILES = Path(__file__).parents[2] / "files"
_NAMES = {"kgs.yaml": "kgs.example.yaml", "dagster.yaml": "dagster.yaml", "workspace.yaml": "workspace.yaml"}


@click.command()
@click.argument("name", type=click.Choice(list(_NAMES)), default="kgs.yaml")
def example(name: str) -> None:
    """Print a file to start from: `kgs example > kgs.yaml` has every setting of kgs, explained, and loads as it stands.

    dagster.yaml has settings for a Dagster instance on one machine (it belongs into DAGSTER_HOME), workspace.yaml is
    what `dagster dev -w` loads.
    """
    click.echo((FILES / _NAMES[name]).read_text(), nl=False)
