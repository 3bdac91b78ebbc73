"""A bar for what takes a known time or amount; without a terminal one line at its beginning."""

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
        is_silent = console.is_terminal or unit != "s"

        def advance(done: float, total: float) -> None:
            nonlocal is_silent
            if not is_silent and done < total:
                is_silent = True
                console.print(f"{what}: {total - done:.0f} {unit}")
            bar.update(task, completed=done, total=total, said=f"{done:.0f} of {total:.0f} {unit}")

        yield advance
