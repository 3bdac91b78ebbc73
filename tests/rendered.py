"""What `rich` makes of a table, line by line."""

from rich.console import Console


def lines_of(renderable, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable, highlight=False)
    return [line.rstrip() for line in captured.get().splitlines()]
