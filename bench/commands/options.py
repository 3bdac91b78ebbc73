"""What measurements take and give alike: lists with commas, files for figures and plots."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from kgs_core.errors import ConfigError

if TYPE_CHECKING:
    from kgs_core.simulation.charts import Chart

T = TypeVar("T")
ABOVE_0 = click.FloatRange(min=0, min_open=True)
_FILE = click.Path(dir_okay=False, path_type=Path)
_PICTURES = (".svg", ".png")


def _writable(_context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before anything is measured."""
    from kgs_core.system.files import check_writable

    if path is not None:
        check_writable(option.opts[0], path)
    return path


def _drawable(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise ConfigError([f"{option.opts[0]}: {path}: name a file that ends in .svg or .png"])
    return _writable(context, option, path)


json_option = click.option("--json", "json_file", type=_FILE, callback=_writable, help="Write all figures there.")
plot_option = click.option(
    "--plot", "plot_file", type=_FILE, callback=_drawable, help="Draw them there, as .svg or .png."
)


def write_json(path: Path | None, figures: object) -> None:
    """Write what `--json` asks for, if it does."""
    from kgs_core.system.files import write_whole

    if path is not None:
        write_whole(path, (json.dumps(figures, indent=1) + "\n").encode())


def write_plot(path: Path | None, charts: "Callable[[], Sequence[Chart]]") -> None:
    """Write what `--plot` asks for, if it does; `charts` is called only then."""
    from kgs_core.simulation.charts import picture
    from kgs_core.system.files import write_whole

    if path is not None:
        write_whole(path, picture(charts(), "png" if path.suffix.lower() == ".png" else "svg"))


def listed(option: str, text: str, read: Callable[[str], T | None], words: str) -> tuple[T, ...]:
    """What stands between the commas, in its order.

    Args:
        option: for messages.
        text: as given.
        read: a part's value; None: it is none.
        words: what to write instead.

    Raises:
        ConfigError: names each part that is none.
    """
    found = [(part.strip(), read(part.strip())) for part in text.split(",")]
    if wrong := [part for part, value in found if value is None]:
        raise ConfigError([f"{option}: '{part}': {words}" for part in wrong])
    return tuple(value for _, value in found if value is not None)


def numbers(option: str, text: str, most: int) -> tuple[int, ...]:
    """Whole numbers from 1 to `most`.

    Raises:
        ConfigError: see `listed`.
    """

    def read(part: str) -> int | None:
        return int(part) if part.isascii() and part.isdigit() and 1 <= int(part) <= most else None

    return listed(option, text, read, f"write numbers from 1 to {most}, with commas between")


def names(option: str, text: str, known: Sequence[T], words: str = "") -> tuple[T, ...]:
    """Some of those that are known, each once.

    Raises:
        ConfigError: see `listed`.
    """
    by_name = {str(each): each for each in known}
    return tuple(dict.fromkeys(listed(option, text, by_name.get, words or f"write {', '.join(by_name)}")))
