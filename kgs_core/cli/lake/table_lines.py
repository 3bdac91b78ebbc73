"""Lines of commands that go through the lake's tables: one for each, and an error that names those that failed."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from kgs_core.errors import TransientError


def show_tables(run: Callable[[Callable[[Any], None]], object], line: Callable[[Any], str], *, as_json: bool) -> int:
    """Print what `run` tells of each table, by `line` (empty: nothing) or as JSON; how many tables there were."""
    shown = 0
    problems: list[str] = []

    def show(found: Any) -> None:
        nonlocal shown
        shown += 1
        if text := json.dumps(asdict(found)) if as_json else line(found):
            click.echo(text)
        if found.problem:
            problems.append(f"table {found.table}: {found.problem}")

    run(show)
    if problems:
        raise TransientError("\n".join(problems))
    return shown
