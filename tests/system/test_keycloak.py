"""Clients that sign in with tokens of Keycloak: those expire, the secret changes, the provider dies and comes back."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError, PortError, TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.system.processes import find_runs
from kgs_core.system.subprocesses import ChildProcess
from tests.system.keycloak import Keycloak, guarded_kafka, running_keycloak
from tests.system.monitoring import settings_of
from tests.system.pipeline import KGS, ConsumerProcess, Pipeline, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.neighbours, pytest.mark.chaos, pytest.mark.slow(150), pytest.mark.timeout(900)]
LIFE_S = 20
SECRET = "s3cret"
FUNCTION = """
import time

import httpx2


def token():
    asked = time.time()
    answer = httpx2.post({url!r}, data={{"grant_type": "client_credentials"}}, auth=("function", {secret!r}), timeout=5)
    found = answer.raise_for_status().json()
    return found["access_token"], asked + found["expires_in"]
"""


@dataclass
class Guarded:
    """A broker that takes nothing but tokens at `address`, and the provider of these."""

    keycloak: Keycloak
    kafka: EmbeddedKafka
    address: str

    def client(self, secret: str = SECRET, url: str = "") -> dict[str, Any]:
        """Settings of kgs, section `kafka.client`."""
        names = {"method": "oidc", "client.id": "kgs", "client.secret": secret}
        named = {**names, "token.endpoint.url": url or f"{self.keycloak.url}/token"}
        bearer = {f"sasl.oauthbearer.{name}": value for name, value in named.items()}
        return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **bearer}

    def pipeline(self, folder: Path, topic: str, kafka: dict[str, Any]) -> Pipeline:
        folder.mkdir()
        rules = [{"topic": topic, "format": "string"}]
        return Pipeline(folder, self.kafka.bootstrap_servers, rules, kafka={"bootstrap_servers": self.address, **kafka})


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with running_keycloak(tmp_path_factory.mktemp("keycloak")) as keycloak:
        keycloak.make_realm(LIFE_S, {"kgs": SECRET, "function": SECRET})
        with guarded_kafka(keycloak, tmp_path_factory.mktemp("kafka")) as (kafka, address):
            yield Guarded(keycloak, kafka, address)


def by_secret_in_a_file(guarded: Guarded, folder: Path, topic: str) -> Pipeline:
    (folder / "secret").write_text(SECRET + "\n")
    client = guarded.client(secret=f"${{file:{folder / 'secret'}}}")
    pipeline = guarded.pipeline(folder / f"{os.getpid()}-file", topic, {"client": client})
    pipeline.add(packing={"consumer_capacity_bytes_per_s": 10_000_000})
    return pipeline


def by_function(guarded: Guarded, folder: Path, topic: str) -> Pipeline:
    client = {name: value for name, value in guarded.client().items() if "oauthbearer." not in name}
    pipeline = guarded.pipeline(
        folder / f"{os.getpid()}-function", topic, {"client": client, "token_function": "asks:token"}
    )
    (pipeline.folder / "asks.py").write_text(FUNCTION.format(url=f"{guarded.keycloak.url}/token", secret=SECRET))
    return pipeline


@dataclass
class Running:
    """A group with its controller, and a consumer for itself."""

    group: Pipeline
    alone: Pipeline
    control: ChildProcess
    consumer: ConsumerProcess
    sent: int = 0

    def send(self, topic: str) -> None:
        values = (str(n).encode() for n in range(self.sent, self.sent + 50))
        self.sent += produce(self.group.bootstrap, topic, values)

    def wait_caught_up(self, topic: str) -> None:
        for pipeline in (self.group, self.alone):
            pipeline.wait_caught_up([topic])

    def logs(self) -> list[str]:
        """Of all processes of the group; of the consumer."""
        logs = [log.read_text() for log in (self.group.folder / "logs").glob("*")]
        return ["".join((*logs, self.control.log_tail(1000))), self.consumer.log.read_text()]


@pytest.fixture
def running(guarded: Guarded, topic_prefix: str, tmp_path: Path) -> Iterator[Running]:
    topic = f"{topic_prefix}a"
    group, alone = by_secret_in_a_file(guarded, tmp_path, topic), by_function(guarded, tmp_path, topic)
    group.admin.create_topic(topic, 2)
    command = [KGS, "control", "--config", str(group.config)]
    control = ChildProcess("control", command, tmp_path / "control.log", folder=group.folder)
    with alone.consumer() as consumer:
        control.start()
        try:
            yield Running(group, alone, control, consumer)
        finally:
            control.kill()
            for members in find_runs(f"{group.settings.group}@").values():
                for member in members:
                    member.kill()


def test_every_record_is_a_row_while_tokens_expire_the_secret_changes_and_the_provider_dies(
    guarded: Guarded, running: Running, topic_prefix: str, tmp_path: Path
) -> None:
    topic, keycloak = f"{topic_prefix}a", guarded.keycloak
    running.send(topic)
    running.wait_caught_up(topic)
    began = time.monotonic()
    keycloak.change_secret("kgs", "another")
    wait_until(lambda: "unauthorized_client" in running.logs()[0], 2 * LIFE_S, "the former secret is refused")
    (tmp_path / "secret").write_text("another\n")
    while time.monotonic() < began + 3 * LIFE_S:
        running.send(topic)
        running.wait_caught_up(topic)
        time.sleep(LIFE_S / 4)
    keycloak.kill()
    wait_until(lambda: all(map(says_why, running.logs())), 3 * LIFE_S, "they say why they cannot go on")
    running.send(topic)
    keycloak.start()
    running.wait_caught_up(topic)
    running.send(topic)
    running.wait_caught_up(topic)
    running.consumer.terminate()
    assert running.control.pid is not None, running.control.log_tail(20)
    for log in running.logs():
        assert "invalid_token" not in log  # a token that has expired, in a broker's words
        assert "has failed" not in log
    for pipeline in (running.group, running.alone):
        assert sorted(int(row["value"]) for row in pipeline.rows(topic)) == list(range(running.sent))


def says_why(log: str) -> bool:
    """Of a question to Kafka, that it has no answer since the provider has none."""
    return any(" topics: " in line and "Connection refused" in line for line in log.splitlines())


def refusal(what: str, client: dict[str, Any], guarded: Guarded) -> PortError:
    settings = settings_of(guarded.address, "nothing.", client)
    began = time.monotonic()
    with pytest.raises(PortError) as caught:
        KafkaAdmin(admin_client(settings), 6.0).list_topics() if what == "admin" else measure(settings)
    assert time.monotonic() - began < 30
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("what", ["admin", "monitor"])
def test_a_wrong_secret_is_final_and_a_provider_that_is_away_is_not(guarded: Guarded, what: str) -> None:
    found = refusal(what, guarded.client(secret="wr0ng"), guarded)
    assert isinstance(found, PermanentError)
    assert "401" in str(found)
    assert "Invalid client credentials" in str(found)
    assert "wr0ng" not in str(found)
    found = refusal(what, guarded.client(url="http://127.0.0.1:1/token"), guarded)
    assert isinstance(found, TransientError)
    assert "token endpoint http://127.0.0.1:1/token: " in str(found)


def test_a_consumer_waits_for_a_provider_at_its_start_and_ends_with_a_wrong_secret(
    guarded: Guarded, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}b"
    waiting = guarded.pipeline(tmp_path / "waiting", topic, {"client": guarded.client(secret="another")})
    refused = guarded.pipeline(tmp_path / "refused", topic, {"client": guarded.client(secret="wr0ng")})
    waiting.admin.create_topic(topic, 1)
    produce(guarded.kafka.bootstrap_servers, topic, [b"1", b"2"])
    with refused.consumer() as ends:
        assert ends.process.wait(60) != 0
        (line,) = [line for line in ends.tail().splitlines() if line.startswith("error: ")]
        assert "unauthorized_client" in line
    guarded.keycloak.kill()
    with waiting.consumer() as waits:
        wait_until(lambda: "token endpoint" in waits.tail(), 60, "it says what it waits for")
        guarded.keycloak.start()
        waiting.wait_caught_up([topic])
        waits.terminate()
