"""librdkafka's settings in kafka-python's words, and a client of it that cannot connect."""

import socket
import ssl
import threading

import pytest

from kgs_core.errors import ConfigError, TransientError
from kgs_core.kafka.errors import OLDEST_TESTED
from kgs_core.kafka.kafka_python import client_settings, open_kafka_python, warn_if_old
from tests.configuration import settings_of


def test_without_security_nothing_but_plaintext():
    assert client_settings({"fetch.wait.max.ms": 5, "client.rack": "a"}) == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_passwords(name):
    client = {"security.protocol": "sasl_plaintext", name: "scram-sha-512", "sasl.username": "u", "sasl.password": "p"}
    assert client_settings(client) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }


@pytest.mark.parametrize("client", [{"sasl.mechanism": "EXTERNAL"}, {}])
def test_a_mechanism_that_it_has_not_is_refused(client):
    with pytest.raises(ConfigError, match="the monitor can use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER only"):
        client_settings({"security.protocol": "SASL_SSL", **client})


@pytest.mark.parametrize(("algorithm", "checked"), [(None, True), ("https", True), ("none", False)])
def test_certificates_are_checked_and_names_unless_switched_off(algorithm, checked):
    client = {"security.protocol": "SSL"} | (
        {"ssl.endpoint.identification.algorithm": algorithm} if algorithm is not None else {}
    )
    context = client_settings(client)["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname is checked


@pytest.mark.parametrize(
    "client",
    [
        {"ssl.ca.location": "/no/such/file"},
        {"ssl.ca.pem": "no certificate"},
        {"ssl.certificate.location": "/no/such/file"},
        {"ssl.certificate.pem": "no certificate", "ssl.key.pem": "the-secret-key"},
        {"ssl.cipher.suites": "NO-SUCH-CIPHER"},
    ],
)
def test_what_cannot_be_loaded_is_named_without_a_secret(client):
    with pytest.raises(ConfigError, match=r"kafka.client: ssl\.\*: .*check the files") as caught:
        client_settings({"security.protocol": "SSL", **client})
    assert "the-secret-key" not in str(caught.value)


def test_one_that_could_not_connect_leaves_no_thread_behind():
    with socket.create_server(("127.0.0.1", 0)) as mute:  # never answers
        settings = settings_of(kafka={"bootstrap_servers": f"127.0.0.1:{mute.getsockname()[1]}"})
        with pytest.raises(TransientError, match="connect with kafka-python"):
            open_kafka_python(settings, 0.2)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-io")] == []


def test_an_old_broker_is_named_once_with_what_to_do(caplog):
    warn_if_old("b:1", OLDEST_TESTED)
    warn_if_old("b:1", (4, 3))
    assert not caplog.records
    for _ in range(2):
        warn_if_old("b:1", (2, 8))
    (line,) = caplog.messages
    assert line == (
        "Kafka b:1: answers like Kafka 2.8, older than what kgs is tested with: use brokers of Kafka 3.6 or later"
    )
