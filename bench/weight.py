"""What the tree weighs: `python -m bench.weight`, as a table in Markdown.

Counts what a newcomer has to read, set and install. Times are medians of five starts on this machine.
"""

import re
import statistics
import subprocess
import sys
import time
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import click
from pydantic import BaseModel

from kgs_core.config import Settings

ROOT = Path(__file__).parents[1]
PRODUCT = ("kgs_core", "kgs_dagster")
STARTS = 5
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
FEATURES = {
    "routes": r"\broute[sd]?\b|\brouting\b|\bRoute\b",
    "layout": r"\blayout\b|partition_columns",
    "evolution": r"\bevol(ve|ution)",
    "newest rows": r"latest_by_key|LatestByKey|newest_rows|NewestRows|newest rows?",
    "combined commits": r"combin(ed|ing)_?commit|\bintents?\b",
    "redrive": r"\bredriv",
    "adopt": r"\badopt",
    "registry": r"\bregistry\b",
    "dead letters": r"dead_?letters?|\bletters?\b",
    "transform": r"\btransforms?\b",
}
"""Feature -> what names it in a file."""


@click.command()
def main() -> None:
    """Print what the tree weighs."""
    click.echo("| what | how much |\n|---|--:|")
    for what, amount in (*_counts(), *_mentions(), *_times()):
        click.echo(f"| {what} | {amount} |")


def _counts() -> Iterator[tuple[str, str]]:
    product, tests = _sources(*PRODUCT), _sources("tests")
    yield "lines of Python in the wheel", f"{_lines(product):,}"
    yield "lines of Python in tests/", f"{_lines(tests):,}"
    yield "lines of code in the wheel, without docstrings and comments", f"{sum(map(_code_lines, product)):,}"
    yield "lines of code in tests/, likewise", f"{sum(map(_code_lines, tests)):,}"
    yield "lines of Python in bench/ and ops/", f"{_lines(_sources('bench', 'ops')):,}"
    yield "lines in docs/, README and CHANGELOG", f"{_lines([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')]):,}"
    yield "modules in the wheel", str(len(product))
    yield "settings in kgs.yaml", str(sum(1 for _ in settings_of(Settings)))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield "dependencies, main list", str(len(project["dependencies"]))
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in {file.parent for file in product}}
    largest = max(sizes, key=lambda folder: sizes[folder])
    yield f"files of the largest folder, {largest.relative_to(ROOT)}", str(sizes[largest])
    yield "folders of more than 20 files", str(sum(size > 20 for size in sizes.values()))  # noqa: PLR2004 - as it says


def settings_of(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The names of all settings of a section, those of its sections with a dot."""
    for name, field in section.model_fields.items():
        inner = [each for each in _parts(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)]
        if inner:
            yield from settings_of(inner[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _parts(annotation: object) -> Iterator[object]:
    yield annotation
    for each in get_args(annotation):
        yield from _parts(each)


def _mentions() -> Iterator[tuple[str, str]]:
    texts = [file.read_text() for file in _sources(*PRODUCT)]
    for feature, words in FEATURES.items():
        yield f"files that name {feature}", str(sum(re.search(words, text) is not None for text in texts))


def _times() -> Iterator[tuple[str, str]]:
    for what, program in (
        ("import kgs_core", "import kgs_core"),
        ("kgs --help", "import sys; sys.argv[1:] = ['--help']; from kgs_core.cli.main import main; main()"),
    ):
        yield f"`{what}`, s", f"{statistics.median(_start_s(program) for _ in range(STARTS)):.2f}"


def _start_s(program: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    return time.monotonic() - began


def _sources(*folders: str) -> list[Path]:
    return [file for folder in folders for file in (ROOT / folder).rglob("*.py")]


def _lines(files: Sequence[Path]) -> int:
    return sum(len(file.read_text().splitlines()) for file in files)


def _code_lines(file: Path) -> int:
    """Lines that hold more than a docstring, a comment or nothing."""
    found: set[int] = set()
    is_first = True
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type in _LAYOUT:
                is_first = is_first or token.type == tokenize.NEWLINE
            elif not (is_first and token.type == tokenize.STRING):
                found.update(range(token.start[0], token.end[0] + 1))
                is_first = False
    return len(found)


if __name__ == "__main__":
    main()
