"""Tables and the console for them: as wide as the terminal, as COLUMNS says, or as wide as a file wants them."""

import os
from collections.abc import Collection
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table


class Screen:
    """Screen of a command that looks again and again: in place on a terminal, else each time below the last."""

    def __init__(self, width_in_file: int, *, in_place: bool) -> None:
        console = self.console = output_console(width_in_file)
        is_live = console.is_terminal and in_place
        self.live = Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") if is_live else None

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()


def output_console(width_in_file: int) -> Console:
    """Standard output; in a pipe or a file COLUMNS has the say, else it is `width_in_file` wide."""
    console = Console(highlight=False)
    if console.is_terminal:
        return console
    named = os.environ.get("COLUMNS", "")
    width = int(named) if named.isdecimal() and int(named) > 0 else width_in_file
    return Console(highlight=False, width=width, force_terminal=False)


def plain_table(*headings: str, left: Collection[str] = (), no_wrap: bool = False) -> Table:
    """Table without lines and rows, numbers at the right; `left`: headings of words. `no_wrap`: nothing is broken."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", overflow="fold", no_wrap=no_wrap)
    return table


def print_table(console: Console, table: Table) -> None:
    """Print it with every word and every figure whole: heads break between words, and what is too wide sticks out."""
    for column in table.columns:
        words = [word for text in (column.header, *column.cells) for word in str(text).split()]
        column.min_width = max((len(word) for word in words), default=0)
    console.print(table, crop=False)
