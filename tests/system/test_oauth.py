"""A group whose clients sign in with tokens of an OpenID Connect provider (SASL/OAUTHBEARER)."""

import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from kgs_core.config import Settings
from kgs_core.config.text import parse_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import PermanentError, PortError, TransientError
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client, reading_client
from kgs_core.kafka.clients import python_settings
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.monitor import measure
from kgs_core.monitor.speeds import Measure
from tests.system.monitoring import settings_of, tree_of
from tests.token_server import TokenServer, broker_options, broker_settings
from tests.waiting import wait_until

TIMEOUT_S = 6.0


@pytest.fixture(scope="module")
def provider() -> Iterator[TokenServer]:
    """The provider."""
    with TokenServer() as server:
        yield server


@pytest.fixture(autouse=True)
def first_secret(provider: TokenServer) -> Iterator[None]:
    """The secret is what it was when a test is over."""
    yield
    provider.clients["kgs"] = "s3cret"


@pytest.fixture(scope="module")
def guarded(provider: TokenServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that takes nothing but its tokens: it must be a process of its own, since others ask for no token."""
    folder = tmp_path_factory.mktemp("oauth")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", broker_options(provider))
        kafka = EmbeddedKafka.start(folder, settings=broker_settings(provider), log=print)
    with kafka:
        yield kafka


def client(provider: TokenServer, **other: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "kgs",
        "sasl.oauthbearer.client.secret": other.get("secret", "s3cret"),
        "sasl.oauthbearer.token.endpoint.url": other.get("url", f"{provider.url}/token"),
    }


@pytest.fixture
def function(provider: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A user's function that asks the provider."""
    (tmp_path / "own_tokens.py").write_text(
        "import time\nprovider = None\ndef get():\n"
        "    provider.given.append('own')\n"
        "    return provider.token('own'), time.time() + provider.life_s, 'own', {}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module("own_tokens").provider = provider
    return "own_tokens:get"


def signing_in(
    way: str, guarded: EmbeddedKafka, prefix: str, own: dict[str, str], secret: Path, function: str
) -> Settings:
    tree = tree_of(guarded.bootstrap_servers, prefix, own)
    if way == "function":
        tree["kafka"]["token_function"] = function
        tree["kafka"]["client"] = {key: value for key, value in own.items() if "oauthbearer." not in key}
    elif way == "secret in a file":
        secret.write_text("s3cret\n")
        tree["kafka"]["client"]["sasl.oauthbearer.client.secret"] = f"${{file:{secret}}}"
    return parse_settings(yaml.safe_dump(tree).encode(), "kgs.yaml", {})


@pytest.mark.slow(60)
@pytest.mark.parametrize("way", ["oidc", "function", "secret in a file"])
def test_every_client_signs_in_and_goes_on_when_its_token_expires(
    provider: TokenServer, guarded: EmbeddedKafka, topic_prefix: str, tmp_path: Path, function: str, way: str
) -> None:
    tp, secret = TopicPartition(f"{topic_prefix}a", 0), tmp_path / "secret"
    settings = signing_in(way, guarded, topic_prefix, client(provider), secret, function)
    provider.life_s = 5.0
    try:
        admin = KafkaAdmin(admin_client(settings))
        assert admin.create_topic(tp.topic, 1)
        producer = Producer(python_settings(admin_client(settings)))
        reader = NativeFetchSession(reading_client(settings))
        before = 0
        for so_far in (100, 200):
            if way == "secret in a file":  # the first one is refused from here on
                secret.write_text(f"secret-{so_far}\n")
                provider.clients["kgs"] = f"secret-{so_far}"
            for _ in range(100):
                producer.produce(tp.topic, b"x" * 1000)
            assert producer.flush(20) == 0
            found = wait_until(
                lambda start={tp: before}: reader.gather(start, 10**6, 0.2, 1.0).ranges, 20, "records come"
            )
            assert found[tp].end == so_far
            before = so_far
            given = len(provider.given)
            more = 1 if way == "function" else 3  # all clients share what it gives
            wait_until(lambda least=given + more: len(provider.given) >= least, 20, "each client asks for a new token")
        reader.close()
        assert tp.topic in admin.list_topics()
    finally:
        provider.life_s = 300.0
    assert measure(settings).reading.measure is Measure.LOG_DIRS


def refusal(what: str, settings: object) -> PortError:
    started = time.monotonic()
    with pytest.raises(PortError) as caught:
        KafkaAdmin(admin_client(settings), TIMEOUT_S).list_topics() if what == "admin" else measure(settings)
    assert time.monotonic() - started < 60, "it gave an answer"
    assert "s3cret" not in str(caught.value)
    assert "wrong" not in str(caught.value)
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("what", ["admin", "monitor"])
def test_a_wrong_secret_is_refused_for_good(
    provider: TokenServer, guarded: EmbeddedKafka, topic_prefix: str, what: str
) -> None:
    found = refusal(what, settings_of(guarded.bootstrap_servers, topic_prefix, client(provider, secret="wrong")))
    assert isinstance(found, PermanentError)
    assert "invalid_client" in str(found)
    assert "check sasl.oauthbearer.* and that the token endpoint answers" in str(found) or what == "monitor"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["admin", "monitor"])
@pytest.mark.parametrize("trouble", ["away", "busy"])
def test_an_endpoint_that_is_away_may_come_back(
    provider: TokenServer, guarded: EmbeddedKafka, topic_prefix: str, what: str, trouble: str
) -> None:
    address = "http://127.0.0.1:1/token" if trouble == "away" else f"{provider.url}/token"
    provider.fault = 503 if trouble == "busy" else None
    try:
        found = refusal(what, settings_of(guarded.bootstrap_servers, topic_prefix, client(provider, url=address)))
    finally:
        provider.fault = None
    assert isinstance(found, TransientError)
