"""`kgs check lake`: whether a store can hold a lake."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import ValidationError

from kgs_core.api.configuration import settings_of
from kgs_core.cli.options import config_option
from kgs_core.errors import ConfigError, UnsafeError

if TYPE_CHECKING:
    from kgs_core.config.settings import LakeSettings


@click.group("check", short_help="Try whether a store can hold a lake.")
def check_group() -> None:
    """Check what kgs needs."""


@check_group.command("lake")
@click.argument("address", metavar="[ADDRESS]", required=False)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="As in lake.storage_options. Repeatable."
)
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def check_lake(*, address: str | None, options: tuple[str, ...], config_file: Path, as_json: bool) -> None:
    """Try everything that consumers and maintenance need from a store, in a folder that is removed at the end.

    ADDRESS is a path, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or
    abfss://container@account.dfs.core.windows.net/prefix; without it, the lake of --config. Takes some seconds. Exit
    status 1 if something does not work, 3 if rows would be lost.
    """
    from kgs_core.lake.topics.factory import try_store

    lake = _lake(address, options, config_file)
    problems = []
    for found in try_store(lake):
        problems += [found.problem] if found.problem else []
        if as_json:
            click.echo(json.dumps({**asdict(found), "problem": found.problem and str(found.problem)}))
        else:
            detail = f", {found.detail}" if found.detail else ""
            click.echo(f"{'no ' if found.problem else 'yes'}  {found.what} ({found.seconds:.1f} s{detail})")
    if problems:
        raise next((p for p in problems if isinstance(p, UnsafeError)), problems[0])
    if not as_json:
        click.echo(f"{lake.root}: can hold a lake")


def _lake(address: str | None, options: tuple[str, ...], config_file: Path) -> "LakeSettings":
    """The lake that is meant.

    Raises:
        ConfigError: an address that can be no lake's, or an option without a value.
    """
    from kgs_core.config.settings import LakeSettings

    if address is None:
        lake = settings_of(config_file).lake
        return lake.model_copy(update={"storage_options": {**lake.storage_options, **_pairs(options)}})
    try:
        lake = LakeSettings(root=address, storage_options=_pairs(options))
    except ValidationError as e:
        raise ConfigError([f"ADDRESS: {e.errors()[0]['msg'].removeprefix('Value error, ')}"]) from e
    return lake if "://" in address else lake.model_copy(update={"root": str(Path(lake.root).absolute())})


def _pairs(options: tuple[str, ...]) -> dict[str, str]:
    pairs = [option.partition("=") for option in options]
    if without := [name for name, equals, _ in pairs if not (name and equals)]:
        raise ConfigError([f"--option {name}: write NAME=VALUE" for name in without])
    return {name: value for name, _, value in pairs}
