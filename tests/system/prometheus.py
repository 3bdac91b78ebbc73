"""A real Prometheus that scrapes a group and evaluates kgs's alert rules; Debian's package `prometheus` has it."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

EVERY = "1s"
_FIRED = 'count_over_time(ALERTS{{alertstate="firing"}}[{span}s])'


class Prometheus:
    """One that runs; asks by its HTTP API."""

    def __init__(self, address: str) -> None:
        self.address = address

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        text = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.address}/api/v1/query?{text}", timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def fired_since(self, moment: float) -> set[str]:
        """Alerts that have been firing at any time since then, seconds on the steady clock."""
        span = max(1, round(time.monotonic() - moment))
        return {one["metric"]["alertname"] for one in self.query(_FIRED.format(span=span))}

    def firing(self) -> set[str]:
        """Alerts that are firing now."""
        with urllib.request.urlopen(f"{self.address}/api/v1/alerts", timeout=30) as answer:
            alerts = json.load(answer)["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def wait_firing(self, expected: set[str], timeout_s: float, tail: Callable[[], str] = str) -> None:
        """Until just these are firing."""
        wait_until(
            lambda: self.firing() == expected, timeout_s, f"{expected} firing, and not {self.firing()}\n{tail()}"
        )


@contextmanager
def prometheus(folder: Path, rules: Sequence[Mapping[str, Any]], targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """A server that evaluates the contents of rule files, and scrapes `host:port` of each job; ended by its pid."""
    program = shutil.which("prometheus")
    assert program, "no prometheus: Debian: apt install prometheus"
    for number, each in enumerate(rules):
        (folder / f"rules-{number}.yaml").write_text(yaml.safe_dump(each))
    jobs = [{"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()]
    every = {"scrape_interval": EVERY, "evaluation_interval": EVERY}
    settings = {"global": every, "rule_files": ["rules-*.yaml"], "scrape_configs": jobs}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    reserved = PortReservation()
    address = f"{HOST}:{reserved.reserve()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    log = folder / "prometheus.log"
    try:
        with log.open("wb") as out:
            process = subprocess.Popen([program, *options, f"--web.listen-address={address}"], stdout=out, stderr=out)
        try:
            server = Prometheus(f"http://{address}")
            wait_until(lambda: _answers(process, server, log), 30, "Prometheus answers")
            yield server
        finally:
            process.terminate()
            process.wait(30)
    finally:
        reserved.release()


def _answers(process: "subprocess.Popen[bytes]", server: Prometheus, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return bool(server.query("vector(1)"))
    except OSError:
        return False
