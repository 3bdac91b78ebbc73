"""`bench handover`: for how long partitions that changed hands had no commit."""

from pathlib import Path

import click

from bench.commands.options import json_option, write_json
from kgs_core.cli.terminal import output_console, plain_table, print_table

_WIDTH_IN_FILE = 120
_SHOWN = 10


@click.command("handover", short_help="For how long partitions that changed hands had no commit.")
@click.argument("lake", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def bench_handover(*, lake: Path, json_file: Path | None) -> None:
    """Time between two commits of a partition in the tables of LAKE: at a handover beside the usual one.

    \b
    kgs demo --bare --seconds 150 --directory build/handover
    python -m bench handover build/handover/lake
    """  # noqa: D301 - \b is click's
    from bench.handover import handovers

    found = handovers(lake)
    if not found:
        click.echo(f"{lake}: no partition changed hands")
        return
    table = plain_table("partition", "from", "to", "no commit for s", "usual s", "times", left=("partition",))
    for each in found[:_SHOWN]:
        times = each.gap_s / each.usual_s
        cells = (f"{each.gap_s:.2f}", f"{each.usual_s:.2f}", f"{times:.1f}")
        table.add_row(str(each.partition), each.before, each.after, *cells)
    print_table(output_console(_WIDTH_IN_FILE), table)
    ratios = sorted(each.gap_s / each.usual_s for each in found)
    middle, most = ratios[len(ratios) // 2], ratios[-1]
    click.echo(
        f"{len(found)} handovers (the longest above): {middle:.1f} usual commits in the median, {most:.1f} at most"
    )
    write_json(json_file, [each._asdict() | {"partition": str(each.partition)} for each in found])
