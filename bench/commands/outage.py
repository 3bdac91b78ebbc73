"""`bench outage`: what is unread, and for how long, when a broker is out."""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.commands.options import json_option, names, numbers, write_json
from kgs_core.cli.terminal import output_console, plain_table, print_table
from kgs_core.errors import PermanentError

if TYPE_CHECKING:
    from bench.outage import OutageFigures

_KINDS = "killed,frozen,refused,black,black in,black out,slow,reset,flapping"
_MOST_BROKERS = 5
_WIDTH_IN_FILE = 160


@click.command("outage", short_help="Seconds that partitions stay unread when a broker is out, beside plain consumers.")
@click.option("--brokers", default="1,3", metavar="N,N", help="Brokers of each cluster, 1 to 5.")
@click.option("--kinds", default=_KINDS, metavar="KIND,KIND", help="Outages to measure.")
@click.option("--partitions", type=click.IntRange(3, 300), default=12, help="Of the topic.")
@click.option("--seconds", type=click.FloatRange(5, 600), default=25.0, help="Length of an outage.")
@click.option(
    "--elect-after",
    "elect_after_s",
    type=click.FloatRange(0, 600),
    default=8.0,
    metavar="SECONDS",
    help="When other leaders are elected by hand, in outages of the network between broker and clients.",
)
@json_option
def bench_outage(
    *, brokers: str, kinds: str, partitions: int, seconds: float, elect_after_s: float, json_file: Path | None
) -> None:
    """Strike one broker of a real cluster while a group, a plain Java and a plain librdkafka consumer read one topic.

    The producer and the brokers among each other are spared: Toxiproxy stands between a broker and the consumers only,
    `make toxiproxy` builds it. The broker leads its share of the topic, the coordinators and the group's own topics.
    The unread time of a partition is the longest in which it had acknowledged records and nobody read any; kgs has
    read a record when it is in the table. Plain consumers subscribe and have a client's defaults.

    \b
    killed, frozen      the process (SIGKILL, SIGSTOP); Kafka elects other leaders
    refused, black      no connection; or all are open and nothing passes, `in` or `out` in one direction only
    slow, reset         answers 5 s late; every connection reset
    flapping            black for 10 s, well for 10 s, again and again
    """  # noqa: D301 - \b is click's
    from bench.outage import OutagePlan, run_outages
    from bench.three_brokers import OUTAGES
    from bench.toxiproxy import find_toxiproxy
    from kgs_core.system.shutdown import stop_on_signals

    outages, sizes = names("--kinds", kinds, tuple(OUTAGES)), numbers("--brokers", brokers, _MOST_BROKERS)
    program = find_toxiproxy()
    if program is None:
        raise PermanentError("bench outage: no Toxiproxy: `make toxiproxy` builds it, or TOXIPROXY names one")
    plan = OutagePlan(sizes, outages, partitions, seconds, elect_after_s)
    for name in ("kgs_core", "kafka"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with stop_on_signals() as stop, tempfile.TemporaryDirectory(prefix="kgs-bench-") as folder:
        found = run_outages(program, Path(folder), plan, lambda text: click.echo(text, err=True), stop)
    print_outages(found)
    write_json(json_file, [each.to_dict() for each in found])


def print_outages(found: "Sequence[OutageFigures]") -> None:
    """A row for each outage, three columns for each reader."""
    readers = list(dict.fromkeys(each.reader for each in found))
    columns = [f"{reader} {figure}" for reader in readers for figure in ("p50 s", "p95", "max")]
    table = plain_table("brokers", "outage", *columns, left=("outage",))
    by_row: dict[tuple[int, str], dict[str, OutageFigures]] = {}
    for each in found:
        by_row.setdefault((each.brokers, each.outage), {})[each.reader] = each
    for (size, outage), row in by_row.items():
        cells = [
            f"{value:.1f}"
            for reader in readers
            for value in (row[reader].percentile(0.5), row[reader].percentile(0.95), row[reader].unread_s[-1])
        ]
        table.add_row(str(size), outage, *cells)
    print_table(output_console(_WIDTH_IN_FILE), table)
