"""The time until which a table is said to be complete, beside the truth: `python -m bench.complete [PICTURE.svg]`.

A real broker, a consumer that is frozen for a while, a producer whose records come up to 4 s late, an idle partition.
The truth is known afterwards: the earliest record, of all that ever came, that was not in the table yet.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
import pyarrow.parquet as pq
import yaml
from confluent_kafka import Message, Producer

from kgs_core.config.file import load_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.lake.topics.complete import CompleteView
from kgs_core.simulation.charts import Chart, picture
from kgs_core.system.subprocesses import ChildProcess

_TOPIC, _PARTITIONS, _IDLE = "orders", 4, 3
_LATENESS_S, _MOST_LATE_S = 5.0, 4.0
_RECORDS_PER_S = 200
_SHOWN_EVERY, _AFTER_START_S = 5, 5.0
Place = tuple[int, int]
"""Partition and offset."""


class SaidAt(NamedTuple):
    """What was said at a moment, seconds since 1970, of a version of the table; None: not known."""

    at_s: float
    until_s: float | None
    version: int


class LateRecords:
    """Records of whose timestamps some are late; and which there were."""

    def __init__(self, bootstrap: str) -> None:
        self.stamps_s: dict[Place, float] = {}
        self._chance = random.Random(1)  # noqa: S311 - a load
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def write(self, until_s: float) -> None:
        """As many as are due in the time up to then."""
        while (left_s := until_s - time.time()) > 0:
            for _ in range(max(1, round(_RECORDS_PER_S * min(left_s, 0.1)))):
                late_s = self._chance.choice([0.0] * 9 + [self._chance.uniform(0, _MOST_LATE_S)])
                stamp_ms = int((time.time() - late_s) * 1000)
                partition = self._chance.choice([p for p in range(_PARTITIONS) if p != _IDLE])
                self._producer.produce(_TOPIC, b"{}", partition=partition, timestamp=stamp_ms, callback=self._noted)
            self._producer.poll(0)
            time.sleep(min(left_s, 0.1))
        self._producer.flush(30)

    def _noted(self, error: object, message: Message) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        self.stamps_s[message.partition() or 0, message.offset() or 0] = message.timestamp()[1] / 1000


def versions_of(table: Path) -> dict[Place, int]:
    """Version that brought each row."""
    found: dict[Place, int] = {}
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for added in (json.loads(line)["add"]["path"] for line in entry.read_text().splitlines() if '"add"' in line):
            rows = pq.read_table(table / added, columns=["_partition", "_offset"])
            places = zip(rows["_partition"].to_pylist(), rows["_offset"].to_pylist(), strict=True)
            found |= dict.fromkeys(places, int(entry.stem))
    return found


def run(folder: Path, seconds: int) -> tuple[list[SaidAt], list[float]]:
    """Looks, one a second, and the truth at each."""
    config = folder / "kgs.yaml"
    with EmbeddedKafka.start(folder / "kafka") as kafka:
        KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers}).create_topic(_TOPIC, _PARTITIONS, 1)
        rule = {"topic": _TOPIC, "complete_hours": {"since": "2026-01-01", "lateness_s": _LATENESS_S}}
        tree = {
            "group": "bench-complete",
            "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
            "lake": {"root": str(folder / "lake")},
            "topics": [rule],
        }
        config.write_text(yaml.safe_dump(tree))
        program = str(Path(sys.executable).with_name("kgs"))
        command = [program, "consume", "--id", "1", "--partitions", f"{_TOPIC}:*", "--config", str(config)]
        environ = {**os.environ, "KGS_BATCH_RUNNER": "local"}
        consumer = ChildProcess("consumer", command, folder / "consumer.log", environ)
        with consumer, CompleteView(load_settings(config, {}), asked_for=True) as view:
            consumer.start()
            load, looks = LateRecords(kafka.bootstrap_servers), list[SaidAt]()
            while not (folder / "lake" / _TOPIC).exists():
                load.write(time.time() + 1.0)
            view.look()  # connects
            load.write(time.time() + _AFTER_START_S)
            begun_s = time.time()
            for second in range(seconds):
                if second in (seconds // 3, seconds // 2):
                    os.kill(consumer.pid or 0, signal.SIGSTOP if second < seconds // 2 else signal.SIGCONT)
                load.write(begun_s + second)
                snapshot, (found,) = view.look()
                until_s = None if found.until_ms is None else found.until_ms / 1000
                looks.append(SaidAt(time.time(), until_s, snapshot.tables[0].version or 0))
            while len(came := versions_of(folder / "lake" / _TOPIC)) < len(load.stamps_s):
                time.sleep(0.5)
    truth = [min((s for p, s in load.stamps_s.items() if came[p] > look.version), default=look.at_s) for look in looks]
    return looks, truth


def chart(looks: Sequence[SaidAt], truth: Sequence[float]) -> Chart:
    """How far what was said, and the truth, were behind the moment."""
    begun_s = looks[0].at_s
    lines = {
        "said": [(each.at_s - begun_s, each.at_s - each.until_s) for each in looks if each.until_s is not None],
        "truth": [(each.at_s - begun_s, each.at_s - true) for each, true in zip(looks, truth, strict=True)],
    }
    return Chart("Complete until: how far behind now", "seconds", "seconds behind", lines=lines)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--seconds", type=click.IntRange(10), default=60)
def main(*, file: Path | None, seconds: int) -> None:
    """Print a line every five seconds, and by how much what was said is before the truth; fails if it is behind it."""
    with tempfile.TemporaryDirectory() as folder:
        looks, truth = run(Path(folder), seconds)
    click.echo("| second | said: seconds behind | truth: seconds behind |\n|--:|--:|--:|")
    margins = []
    for number, (look, true) in enumerate(zip(looks, truth, strict=True)):
        said = "not known" if look.until_s is None else f"{look.at_s - look.until_s:.1f}"
        if number % _SHOWN_EVERY == 0:
            click.echo(f"| {look.at_s - looks[0].at_s:.0f} | {said} | {look.at_s - true:.1f} |")
        if look.until_s is not None:
            margins.append(true - look.until_s)
    known = f"{len(looks)} looks, {len(margins)} with a time"
    click.echo(f"{known}: before the truth by {min(margins):.1f} to {max(margins):.1f} s")
    if file is not None:
        file.write_bytes(picture([chart(looks, truth)], "svg"))
    if min(margins) < 0:
        raise click.ClickException("a record came that was said to be there")


if __name__ == "__main__":
    main()
