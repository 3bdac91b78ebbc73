"""The learnt capacity of a real group comes near that of `kgs capacity`, and follows a consumer that turns slow.

A quarter of an hour, and alone on the machine, for other work is learnt, too: so no part of `make test`. `make soak`
runs it and prints the figures. It needs processes: what a real consumer reads flat out on Spark, beside what the
command measures on the same machine, is the question. It writes some 20 GB, so not into memory as other tests do.
"""

import json
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import yaml
from confluent_kafka import Producer

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.reporting.capacity import capacity_line
from kgs_core.reporting.status import GroupStatus
from kgs_core.system.processes import find_runs
from tests.system.rig import PARTITIONS, SECTIONS, Rig

pytestmark = [pytest.mark.soak, pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(2400)]
FIELDS = 300
BACKLOG_S = 200.0
STOPPED_S, RUNNING_S = 0.3, 0.2
LOAD_SHARE = 0.45
_LONG_S = 600.0


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On a disk."""
    with tempfile.TemporaryDirectory(prefix="kgs-soak-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    """A broker whose log is there."""
    with EmbeddedKafka.start(tmp_path / "kafka", log=print) as kafka:
        yield kafka


def values() -> list[bytes]:
    """JSON of many short columns: much work for few bytes."""
    draw = random.Random(1)
    return [json.dumps({f"f{n}": draw.randrange(1000) for n in range(FIELDS)}).encode() for _ in range(500)]


class Load:
    """Produces to a topic: a backlog as fast as it can, and a steady load until the end of its block."""

    def __init__(self, bootstrap: str, topic: str, logs: Path) -> None:
        self._logs = logs
        self._produced = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 20,
                "queue.buffering.max.kbytes": 200_000,
                "compression.type": "lz4",
            }
        )
        self._topic = topic
        self._values = values()
        self._stop = threading.Event()
        self.record_bytes = 0.0

    def backlog(self, records: int) -> None:
        """So many records; then it is known how many bytes of a log one takes."""
        for n in range(records):
            self._one(n)
        assert self._producer.flush(120) == 0
        self._produced += records
        stored = sum(file.stat().st_size for file in self._logs.glob(f"**/{self._topic}-*/*.log"))
        self.record_bytes = stored / self._produced

    @contextmanager
    def steady(self, bytes_per_s: float) -> Iterator[None]:
        """As many of them a second as make up so many bytes of a log."""
        thread = threading.Thread(target=self._run, args=(bytes_per_s / self.record_bytes,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(60)

    def _run(self, per_s: float) -> None:
        began, sent = time.monotonic(), 0
        while not self._stop.wait(0.02):
            due = int((time.monotonic() - began) * per_s)
            for n in range(sent, due):
                self._one(n)
            sent = due
        self._producer.flush(30)

    def _one(self, n: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, self._values[n % len(self._values)], partition=n % PARTITIONS)
                break
            except BufferError:
                self._producer.poll(0.05)
        if n % 500 == 0:
            self._producer.poll(0)


@contextmanager
def slowed(group: str, stopped_s: float, running_s: float) -> Iterator[None]:
    """Every process of the group's first consumer stands still for a part of the time (SIGSTOP)."""
    names = sorted(find_runs(f"{group}@").items())
    processes = [member.pid for name, members in names for member in members if name.split("/")[-2] == "1"]
    assert processes
    stop = threading.Event()

    def tell(what: signal.Signals) -> None:
        for pid in processes:
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                os.kill(pid, what)

    def run() -> None:
        while not stop.is_set():
            tell(signal.SIGSTOP)
            time.sleep(stopped_s)
            tell(signal.SIGCONT)
            time.sleep(running_s)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)
        tell(signal.SIGCONT)


def configure(rig: Rig) -> None:
    """No capacity: it is learnt."""
    tree = yaml.safe_load(rig.pipeline.config.read_text())
    written = {name: value for name, value in tree["packing"].items() if "capacity" not in name}
    rig.settings = rig.pipeline.add(packing={**written, "max_consumers": 3})


def flat_out(found: GroupStatus) -> float:
    """What consumers read flat out, stored bytes/s; 0: not known."""
    return (found.capacity.learnt.bytes_per_s or 0.0) if found.capacity is not None else 0.0


def test_it_comes_near_what_is_measured_and_follows_a_slow_consumer(  # noqa: PLR0915 - one story, minutes long
    kafka: EmbeddedKafka,
    topic_prefix: str,
    tmp_path: Path,
    record_property: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    logged: list[str] = []

    def say(text: str) -> None:
        logged.append(text)
        record_property("said", text)
        with capsys.disabled():
            print(f"\n{time.strftime('%H:%M:%S')} {text}", flush=True)

    folder = tmp_path / topic_prefix.rstrip(".")
    folder.mkdir()
    topic = f"{topic_prefix}load"
    rule = {"topic": topic, "format": "json", "schema": {f"f{n}": "int" for n in range(FIELDS)}, "start": "earliest"}
    load = Load(kafka.bootstrap_servers, topic, tmp_path / "kafka")
    packing = {**SECTIONS["packing"], "consumer_weight": "fewest"}
    with Rig(folder, kafka, topic, topics=[rule], packing=packing) as rig:
        load.backlog(150_000)
        first = json.loads(rig.kgs("capacity", "--seconds", "20", "--json").stdout)["mode_bytes_per_s"]
        say(f"alone on the machine: {first / 1e6:.1f} MB/s")
        configure(rig)
        load.backlog(int(BACKLOG_S * first / load.record_bytes))
        with load.steady(LOAD_SHARE * first):
            measured = json.loads(rig.kgs("capacity", "--seconds", "45", "--json").stdout)["mode_bytes_per_s"]
            say(f"kgs capacity, beside a producer of {LOAD_SHARE * first / 1e6:.1f} MB/s: {measured / 1e6:.1f} MB/s")
            with rig.controller():
                began = time.monotonic()
                found = rig.wait(flat_out, "something is learnt", _LONG_S)
                say(f"learnt after {time.monotonic() - began:.0f} s: {flat_out(found) / 1e6:.1f} MB/s")
                found = rig.wait(
                    lambda seen: abs(flat_out(seen) / measured - 1) <= 0.1, "within 10 % of what is measured", _LONG_S
                )
                say(f"{flat_out(found) / measured - 1:+.1%} of what is measured after {time.monotonic() - began:.0f} s")
                assert found.capacity is not None
                say(capacity_line(found.capacity))
                with slowed(rig.settings.group, STOPPED_S, RUNNING_S):
                    began = time.monotonic()
                    fallen = rig.wait(lambda seen: flat_out(seen) < 0.6 * measured, "the slow one shows", _LONG_S)
                    assert fallen.capacity is not None
                    say(f"after {time.monotonic() - began:.0f} s: {capacity_line(fallen.capacity)}")
                    say(f"now {flat_out(fallen) / measured:.0%} of what was measured; it runs 40 % of the time")
                    followed = rig.wait(
                        lambda seen: (
                            seen.target is not None
                            and seen.target.learnt is not None
                            and len(set(seen.target.assignment.values())) > 1
                        ),
                        "the plan follows",
                        _LONG_S,
                    )
                    assert followed.target is not None
                    say(
                        f"after {time.monotonic() - began:.0f} s the Target has "
                        f"{len(set(followed.target.assignment.values()))} consumers of "
                        f"{followed.target.capacity / 1e6:.1f} MB/s: {followed.target.reason}"
                    )
