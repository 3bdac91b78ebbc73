"""A bar for what takes a known time or amount; nothing without a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(what: str, console: Console, unit: str = "s") -> Iterator[Callable[[float, float], None]]:
    """A function that takes how much is done and how much there is; the bar is gone at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None, said="")

        def advance(done: float, total: float) -> None:
            bar.update(task, completed=done, total=total, said=f"{done:.0f} of {total:.0f} {unit}")

        yield advance
