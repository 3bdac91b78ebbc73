"""A scripted outage on the real thing: each alert of ops/prometheus fires in its own outage, and no other one does.

Real broker, `kgs control --metrics-port` with real consumers, `kgs metrics`, and a real Prometheus with the rules as
they are shipped but for their times: every `for`, window and limit in seconds is a tenth, see `shortened_rules`.
`make alerts-live` runs it; it needs Debian's package `prometheus`, and ten minutes.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from bench.load_shapes import KnownLoad, steady
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from ops import make_dashboard
from tests.ops.shortened_rules import shortened
from tests.system.demo_run import DemoRun, started
from tests.system.exporter import exporter_at
from tests.system.pipeline import json_values, produce
from tests.system.prometheus import Prometheus, prometheus
from tests.system.rig import BUSY, SECTIONS, Rig
from tests.waiting import wait_until

pytestmark = [pytest.mark.alerts, pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(3600)]
RULES = yaml.safe_load((Path(__file__).parents[2] / "ops/prometheus/rules.yaml").read_text())
FACTOR = 10
DAY_FACTOR = 86_400 / 200
QUIET_S = 60.0
PROGRAM = "from kgs_core.cli.main import main; main()"
EVENTS, HOT = "events", "hot"
TOPICS = [
    {"topic": EVENTS, "format": "json", "schema": {"i": "long", "s": "string"}},
    {"pattern": ".*"},
]


class Outages:
    """A group under a Prometheus; what fires in each outage is noted, and printed with its times."""

    def __init__(self, rig: Rig, kafka: EmbeddedKafka, server: Prometheus) -> None:
        self.rig = rig
        self.kafka = kafka
        self.server = server

    @contextmanager
    def outage(self, name: str, alert: str, timeout_s: float = 120.0) -> Iterator[None]:
        """The block is the outage: within, `fires` waits for its alert. Afterwards all falls silent.

        Raises:
            AssertionError: another alert has fired at any time, or this one goes on.
        """
        began = time.monotonic()
        self._fires = lambda: self.server.wait_firing({alert}, timeout_s, self.rig.tail)
        yield
        fell_silent = time.monotonic()
        self.server.wait_firing(set(), 150.0, self.rig.tail)
        now = time.monotonic()
        assert self.server.fired_since(began) == {alert}, self.rig.tail()
        print(f"{name}: {alert} after {self._fired - began:.0f} s, silent {now - fell_silent:.0f} s after its end")
        time.sleep(2.0)  # the next outage's first second is none of this one

    def fires(self) -> None:
        """Wait for the alert of this outage, and for no other one."""
        self._fires()
        self._fired = time.monotonic()

    def frozen_consumer(self) -> None:
        victim = max(self.rig.consumers().items())[1]
        with self.outage("a consumer is frozen", "KgsConsumerSilent"):
            os.kill(victim, signal.SIGSTOP)
            self.fires()
            os.kill(victim, signal.SIGCONT)

    def dead_controller(self, control: "subprocess.Popen[bytes]", held: ExitStack) -> None:
        with self.outage("the controller is dead", "KgsControllerDown"):
            control.kill()
            self.fires()
            held.enter_context(self.rig.controller("--metrics-port", "0"))

    def dead_letters(self) -> None:
        with self.outage("dead letters", "KgsDeadLetters"):
            produce(self.kafka.bootstrap_servers, EVENTS, [b"no JSON"] * 10)
            self.fires()

    def hot_partition(self) -> None:
        load = KnownLoad(self.kafka.bootstrap_servers, HOT, steady(2 * BUSY))
        with self.outage("a partition is too hot", "KgsHotPartition", timeout_s=180), load:
            self.fires()

    def rows_twice(self) -> None:
        self.rig.kgs("pause", "--wait")
        with self.outage("the audit finds rows twice", "KgsAuditFinding"):
            mend = doubled_rows(self.rig.pipeline.lake / EVENTS)
            self.fires()
            mend()
        self.rig.kgs("resume", "--wait")

    def no_broker(self) -> None:
        with self.outage("the broker is away", "KgsExporterBlind"):
            self.kafka.nodes[0].kill()
            self.fires()
            self.kafka.restart(self.kafka.nodes[0])
        self.rig.wait(lambda found: found.is_converged, "all is as before")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka.start(tmp_path / "kafka") as own:
        yield own


@pytest.fixture
def rig(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Rig]:
    packing = {**SECTIONS["packing"], "max_rscore_per_hour": 100}
    with Rig(tmp_path, kafka, "load", topics=TOPICS, packing=packing) as rig:
        rig.pipeline.admin.create_topic(EVENTS, 1)
        rig.pipeline.admin.create_topic(HOT, 1)
        yield rig


def test_every_alert_fires_in_its_outage_alone_and_falls_silent(rig: Rig, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with ExitStack() as held:
        held.enter_context(KnownLoad(kafka.bootstrap_servers, rig.topic, steady(BUSY)))
        produce(kafka.bootstrap_servers, EVENTS, json_values(0, 100))
        produce(kafka.bootstrap_servers, HOT, json_values(0, 100))
        control = held.enter_context(rig.controller("--metrics-port", "0"))
        rig.wait(lambda found: found.is_converged and len(set(found.current.values())) == 2, "two consumers")
        own = held.enter_context(exporter_at(rig.pipeline.command("metrics"), "--every", "1", "--audit-every", "0.002"))
        targets = {"kgs-metrics": own, "kgs-control": _address_in(rig.log)}
        server = held.enter_context(prometheus(tmp_path, [shortened(RULES, FACTOR)], targets))
        outages = Outages(rig, kafka, server)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > QUIET_S, QUIET_S, "a while of peace")
        assert server.fired_since(began) == set(), rig.tail()
        outages.frozen_consumer()
        outages.dead_controller(control, held)
        outages.dead_letters()
        outages.hot_partition()
        outages.rows_twice()
        assert_every_panel_shows_something(server, rig.settings.group)
        outages.no_broker()
    rig.pipeline.wait_caught_up([rig.topic, EVENTS, HOT])
    rig.pipeline.assert_audit_is_clean()


def doubled_rows(path: Path) -> Callable[[], None]:
    """Some rows of a table once more, as a careless writer adds them; returns what takes them out again."""
    table = DeltaTable(str(path))
    before = table.version()
    write_deltalake(table, table.to_pyarrow_table().slice(0, 3), mode="append")

    def mend() -> None:
        again = DeltaTable(str(path))
        again.alter.set_table_properties({"delta.appendOnly": "false"})
        again.restore(before)

    return mend


def assert_every_panel_shows_something(server: Prometheus, group: str) -> None:
    """Each expression of the dashboard, asked of the real Prometheus as Grafana asks it."""
    empty: list[str] = []
    for _, title, _, queries in make_dashboard.PANELS:
        for legend, expression in queries.items():
            found = server.query(expression.replace("$group", group).replace("$__rate_interval", "3m"))
            empty += [f"{title}: {legend}"] if not found else []
    assert [one for one in empty if "flat out" not in one] == [], "and nobody need be flat out"


def test_nothing_fires_through_a_day_of_flights(tmp_path: Path) -> None:
    """The rules as they are, and with a tenth of their times, over the demo: a day in 200 s.

    One speaks of how many changes there are in half an hour: that is half an hour of this day, 432 times shorter.
    """
    with ExitStack() as held:
        run = held.enter_context(
            started([sys.executable, "-c", PROGRAM, "demo", "--bare", "--seconds", "200"], tmp_path)
        )
        own = run.wait_for(r"metrics for Prometheus: http://(\S+)/metrics", 120).group(1)
        run.wait_for(r"first rows in the lake", 320)
        command = [sys.executable, "-c", PROGRAM, "metrics", "--config", f"{run.directory}/kgs.yaml"]
        beside = held.enter_context(exporter_at(command, "--every", "1"))
        targets = {"kgs-metrics": beside, "kgs-demo": own}
        states = only(lambda name: name != "KgsFlapping")
        rules = [states, shortened(states, FACTOR), shortened(only("KgsFlapping".__eq__), DAY_FACTOR)]
        server = held.enter_context(prometheus(tmp_path, rules, targets))
        began = time.monotonic()
        run.wait_for(r"ending the consumers and all else", 400)
        assert server.fired_since(began) == set(), run.output
        assert len(server.query("kgs_consumers")) >= 10, "both targets were scraped"
        assert_demo_is_exact(run)


def only(is_meant: Callable[[str], bool]) -> dict[str, Any]:
    """The rules of some alerts."""
    (group,) = RULES["groups"]
    return {"groups": [{**group, "rules": [rule for rule in group["rules"] if is_meant(rule["alert"])]}]}


def assert_demo_is_exact(run: DemoRun) -> None:
    assert run.process.wait(300) == 0, run.output


def _address_in(log: Path) -> str:
    """`host:port` that a controller has named."""
    wait_until(lambda: "metrics of" in log.read_text(), 60, "the controller names its address")
    found: str = re.findall(r"metrics of .*: http://(\S+)/metrics", log.read_text())[-1]
    return found
