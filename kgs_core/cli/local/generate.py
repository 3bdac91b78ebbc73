"""`kgs generate`: the flight replay as a load on a Kafka cluster."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgs_core.cli.options import local_brokers_option
from kgs_core.errors import ConfigError, PermanentError

if TYPE_CHECKING:
    from kgs_core.demo.replay import Replay

_SPEEDS_STEP_S = 5.0
_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.command()
@local_brokers_option
@click.option(
    "--time-factor",
    type=_ABOVE_0,
    default=432.0,
    help="Simulated seconds per second. 432 lets a day pass in 200 s; 864 doubles the load, 1 is real time.",
)
@click.option(
    "--date",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    default="2013-09-18",
    help="First day, in 2013; the days after it follow.",
)
@click.option(
    "--start-at",
    type=click.DateTime(["%H:%M"]),
    default="04:00",
    metavar="HH:MM",
    help="Time of that day in New York to start at.",
)
@click.option("--seconds", type=_ABOVE_0, help="Stop after so many real seconds. Default: run until interrupted.")
@click.option(
    "--tally",
    "tally_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file, rewritten every second: the records the brokers acknowledged, by topic and partition.",
)
@click.option(
    "--save-speeds",
    "speeds_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Produce nothing: write the load's write speeds, every 5 s, to FILE, for `kgs simulate --speeds`. Needs "
    "--seconds.",
)
def generate(  # noqa: PLR0913 - one per option
    *,
    bootstrap_servers: str,
    time_factor: float,
    day: datetime,
    start_at: datetime,
    seconds: float | None,
    tally_file: Path | None,
    speeds_file: Path | None,
) -> None:
    """Replay the flights that left New York City in 2013 into Kafka.

    Every aircraft in the air reports its position to flights.ewr, flights.jfk or flights.lga, keyed by tail number;
    the weather of the three airports goes to flights.weather. Flights, delays and weather are measured; the positions
    between two airports are interpolated. At the default pace the load peaks at about 2 MB/s uncompressed, and
    is close to zero at night. Missing topics are created, with 8 partitions each.

    SIGINT or SIGTERM ends the replay after the outstanding records are acknowledged.
    """
    from kgs_core.demo.replay import open_replay
    from kgs_core.kafka.paced_producer import FlightProducer
    from kgs_core.system.files import check_writable
    from kgs_core.system.shutdown import stop_on_signals

    if tally_file is not None:
        check_writable("--tally", tally_file)
    if speeds_file is not None:
        if seconds is None:
            raise ConfigError(["--save-speeds: how much of the replay: give --seconds, 200 for a day"])
        _save_speeds(speeds_file, open_replay(day.date(), start_at.time(), time_factor), seconds)
        return
    with stop_on_signals() as stop:
        replay = open_replay(day.date(), start_at.time(), time_factor)
        _create_topics(bootstrap_servers)
        producer = FlightProducer({"bootstrap.servers": bootstrap_servers}, tally_file)
        click.echo(f"replaying from {day:%Y-%m-%d} {start_at:%H:%M} at {time_factor:g} simulated seconds per second")
        tally = producer.run(replay.due, stop, seconds)
    click.echo(f"delivered {tally.delivered} records in {tally.replayed_s:.1f} s of replay, {tally.failed} failed")
    if tally.failed:
        raise PermanentError(
            f"generate: {tally.failed} records were not delivered: check that the topics exist and the brokers are up"
        )


def _save_speeds(path: Path, replay: "Replay", seconds: float) -> None:
    from kgs_core.demo.replay import write_speeds
    from kgs_core.simulation.recorded import json_lines
    from kgs_core.system.files import check_writable, write_whole

    check_writable("--save-speeds", path)
    measurements = list(write_speeds(replay, seconds, _SPEEDS_STEP_S))
    write_whole(path, json_lines(measurements).encode())
    click.echo(f"{path}: {len(measurements)} measurements, {_SPEEDS_STEP_S:g} s each")


def _create_topics(bootstrap_servers: str) -> None:
    from kgs_core.demo.replay import PARTITIONS, TOPICS
    from kgs_core.kafka.admin import KafkaAdmin

    admin = KafkaAdmin({"bootstrap.servers": bootstrap_servers})
    for topic in TOPICS:
        admin.create_topic(topic, PARTITIONS, 1, {})
