"""`bench events`: what an event costs the controller of a large group."""

import click

from kgs_core.cli.terminal import output_console, plain_table

_WIDTH_IN_LOG = 100


@click.command("events", short_help="CPU of one event for the controller of 100,000 partitions and 1,000 consumers.")
@click.option("--partitions", type=click.IntRange(10, 1_000_000), default=100_000)
@click.option("--consumers", type=click.IntRange(2, 9_999), default=1_000)
@click.option("--seconds", type=click.IntRange(1, 1000), default=10, help="Of the group's time.")
def bench_events(*, partitions: int, consumers: int, seconds: int) -> None:
    """Let the controller of a group in which nothing changes but the speeds hear so many seconds of events.

    No broker: the pure controller alone, in this process, with a measurement and a Tick a second, two looks at the
    fleet, and ten reads of 33 heartbeats. CPU is that of its thread.
    """
    from bench.controller_events import time_events

    found = time_events(partitions, consumers, seconds)
    table = plain_table("event", "number", "mean ms", "highest ms", left=("event",), no_wrap=True)
    for name, each in found.items():
        table.add_row(name, str(each.count), f"{each.mean_ms:.2f}", f"{each.highest_ms:.2f}")
    output_console(_WIDTH_IN_LOG).print(table)
    in_all, events = sum(each.count * each.mean_ms for each in found.values()), sum(e.count for e in found.values())
    click.echo(f"in all {in_all / seconds:.0f} ms of CPU a second, {in_all / events:.1f} an event")
