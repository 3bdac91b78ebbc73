"""kafka-python's client, for requests that librdkafka has no call for; made from the same settings."""

import logging
import ssl
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from kgs_core.config import Settings
from kgs_core.config.passthrough import mechanism_of
from kgs_core.errors import ConfigError, PermanentError, PortError, TransientError
from kgs_core.kafka.client_config import admin_client
from kgs_core.kafka.clients import token_source
from kgs_core.kafka.errors import NEWER, OLDEST_TESTED
from kgs_core.kafka.silent_brokers import first
from kgs_core.kafka.tokens import TokenSource
from kgs_core.system.secret_files import with_secrets

_PASSED = {  # librdkafka's name -> kafka-python's
    "client.dns.lookup": "client_dns_lookup",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_METADATA_AGE_MS = 10_000  # how long a broker that has come newly stays unknown to it
_log = logging.getLogger(__name__)


# kafka-python is not typed
class TokenRefusedError(KafkaError):  # type: ignore[misc]
    """Refusal of a token: another try gives the same answer."""


class TokenNotAnsweredError(KafkaError):  # type: ignore[misc]
    """No token now."""

    retriable = True


class ProvidedTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens of a `TokenSource` as kafka-python asks for them."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._extensions: dict[str, str] = {}

    def token(self) -> str:
        """A token that has not expired.

        Raises:
            TokenRefusedError, TokenNotAnsweredError: there is none.
        """
        try:
            found = self._source.token()
        except TransientError as e:
            raise TokenNotAnsweredError(str(e)) from e
        except PortError as e:
            raise TokenRefusedError(str(e)) from e
        self._extensions = dict(found.extensions)
        return found.value

    def extensions(self) -> dict[str, str]:
        """What is told to the broker beside the token that was given out last."""
        return self._extensions


def open_kafka_python(settings: Settings, timeout_s: float) -> KafkaAdminClient:
    """A connected client, for several threads; a ConfigError for a setting of `kafka.client` that it cannot follow."""
    # What it logs of a broker that is away comes many times a second and stands in our errors
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    return first(lambda: _connected(settings, timeout_s), KafkaAdminClient.close)


def _connected(settings: Settings, timeout_s: float) -> KafkaAdminClient:
    where = settings.kafka.bootstrap_servers
    made: list[KafkaNetClient] = []

    def inner(**given: Any) -> KafkaNetClient:
        made.append(KafkaNetClient(**given))
        return made[0]

    try:
        client = KafkaAdminClient(
            **client_settings(admin_client(settings)),
            kafka_client=inner,
            bootstrap_servers=where.split(","),
            client_id="kgs-monitor",
            request_timeout_ms=round(timeout_s * 1000),
            bootstrap_timeout_ms=round(timeout_s * 1000),
            metadata_max_age_ms=_METADATA_AGE_MS,
            reconnect_backoff_max_ms=1000,
        )
    except KafkaError as e:
        for each in made:  # theirs gives its thread and sockets up only where it was made
            each.close()
        kind = TransientError if getattr(e, "retriable", False) else PermanentError
        raise kind(f"Kafka {where}: connect with kafka-python: {e}: check the brokers and kafka.client") from e
    warn_if_old(where, made[0].get_broker_version())
    return client


@cache  # once in a process
def warn_if_old(where: str, version: tuple[int, ...]) -> None:
    """Warn where a broker knows fewer requests than the oldest Kafka that kgs is tested with.

    Not refused: it may be one of a cluster that is being updated, or a service that speaks Kafka's protocol under
    numbers of its own. What kgs cannot do without (topic ids, transactions) is refused by who asks for it.
    """
    if version < OLDEST_TESTED:
        _log.warning(
            "Kafka %s: answers like Kafka %s, older than what kgs is tested with: %s",
            where,
            ".".join(map(str, version)),
            NEWER,
        )


def client_settings(client: Mapping[str, str | int | bool]) -> dict[str, Any]:
    """kafka-python's settings for those of librdkafka; network tuning that it has no name for is left out.

    Raises:
        PermanentError: a file of secrets cannot be read.
        ConfigError: a mechanism that it does not have here, or certificates and keys that cannot be loaded.
    """
    source = token_source(client)
    client = with_secrets("kafka.client", client)
    passed: dict[str, Any] = {ours: client[theirs] for theirs, ours in _PASSED.items() if theirs in client}
    protocol = str(client.get("security.protocol", "PLAINTEXT")).upper()
    passed["security_protocol"] = protocol
    if protocol.startswith("SASL"):
        passed["sasl_mechanism"] = _mechanism(client)
        if source is not None:
            passed["sasl_oauth_token_provider"] = ProvidedTokens(source)
    if protocol.endswith("SSL"):
        passed["ssl_context"] = _ssl_context(client)
    return passed


def _mechanism(client: Mapping[str, str | int | bool]) -> str:
    mechanism = mechanism_of(client)
    if mechanism not in _MECHANISMS:
        raise ConfigError(
            [f"kafka.client: sasl.mechanism {mechanism}: the monitor can use {', '.join(_MECHANISMS)} only"]
        )
    return mechanism


def _ssl_context(client: Mapping[str, str | int | bool]) -> ssl.SSLContext:
    text = {key: str(value) for key, value in client.items() if key.startswith("ssl.")}
    try:
        context = ssl.create_default_context(cafile=text.get("ssl.ca.location"), cadata=text.get("ssl.ca.pem"))
        # librdkafka's default is https; its other value switches the check of the name off
        context.check_hostname = text.get("ssl.endpoint.identification.algorithm", "https") == "https"
        if "ssl.cipher.suites" in text:
            context.set_ciphers(text["ssl.cipher.suites"])
        _load_certificate(context, text)
    except (OSError, ValueError) as e:  # ssl.SSLError is an OSError
        raise ConfigError([f"kafka.client: ssl.*: {e}: check the files and their password"]) from e
    return context


def _load_certificate(context: ssl.SSLContext, text: Mapping[str, str]) -> None:
    """Our own certificate, from files or from the settings themselves (OpenSSL reads it from files only)."""
    password = text.get("ssl.key.password")
    if "ssl.certificate.location" in text:
        context.load_cert_chain(text["ssl.certificate.location"], text.get("ssl.key.location"), password)
    elif "ssl.certificate.pem" in text:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by this user only
            file.write(text.get("ssl.key.pem", "") + "\n" + text["ssl.certificate.pem"])
            file.flush()
            context.load_cert_chain(file.name, password=password)
