"""A table that drops its less important columns on a narrow screen instead of breaking words."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kgs_core.cli.terminal import plain_table

_ENDLESS = 10_000


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        heading: breaks only at its blanks.
        is_number: aligned to the right, never broken.
        spared: order of dropping columns that do not fit, the highest number first; 0: never dropped.
    """

    heading: str
    is_number: bool = False
    is_text: bool = False
    spared: int = 0


class FittingTable:
    """Rows, with as many columns as fit."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], caption: str = "") -> None:
        self._columns = columns
        self._rows = rows
        self._caption = caption

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The widest table that fits; the narrowest one where none does."""
        for least in sorted({column.spared for column in self._columns}, reverse=True):
            table = self._table(least)
            if Measurement.get(console, options.update(max_width=_ENDLESS), table).minimum <= options.max_width:
                break
        yield table

    def _table(self, least: int) -> Table:
        """With the columns that are spared at `least` or are more important."""
        shown = [number for number, column in enumerate(self._columns) if column.spared <= least]
        table = plain_table()
        for number in shown:
            column = self._columns[number]
            words = column.heading.split()
            kept = words if column.is_text else [*words, *(str(row[number]) for row in self._rows)]
            table.add_column(
                column.heading if column.is_text else "\n".join(words),
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_text,
                overflow="fold",
                min_width=max(map(cell_len, kept)),
            )
        for row in self._rows:
            table.add_row(*(row[number] for number in shown))
        if self._caption:
            table.caption, table.caption_justify = self._caption, "left"
        return table
