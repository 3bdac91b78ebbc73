"""What is worth another try, and what is said of it."""

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import errors
from kgs_core.kafka.errors import note_token, note_token_failure, port_error
from kgs_core.kafka.producers import write_error


def told(code: int, cause: KafkaError | None = None) -> Exception:
    return port_error("a:1,b:2", "create topic 't'", KafkaError(code), cause)


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        (TransientError, ["_DESTROY_BROKER", "_TIMED_OUT", "_TRANSPORT", "NOT_CONTROLLER"]),
        (PermanentError, ["_AUTHENTICATION", "TOPIC_AUTHORIZATION_FAILED"]),
    ],
)
def test_what_passes_is_worth_another_try_and_what_gives_the_same_answer_again_is_not(kind, codes):
    assert {code: type(told(getattr(KafkaError, code))) for code in codes} == dict.fromkeys(codes, kind)


@pytest.mark.parametrize("code", [KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION])
def test_what_a_broker_has_not_is_refused_with_the_version_to_use(code):
    found = told(code)
    assert (type(found), str(found).endswith(": use brokers of Kafka 3.6 or later")) == (PermanentError, True)


def test_a_broker_that_has_left_the_cluster_is_reported():
    assert str(told(KafkaError._DESTROY_BROKER)) == (
        "Kafka a:1,b:2: create topic 't': Local: Broker handle destroyed without termination: "
        "try again: the broker that was asked has left the cluster, or has only just joined it"
    )


def test_without_an_answer_the_connection_says_why():
    refused = KafkaError(KafkaError._TRANSPORT, "a:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused")
    for code in (KafkaError._DESTROY_BROKER, KafkaError._TIMED_OUT):
        assert "failed: Connection refused" in str(told(code, refused))
    assert "refused" not in str(told(KafkaError.NOT_CONTROLLER, refused))


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._TIMED_OUT, KafkaError._TRANSPORT])
@pytest.mark.parametrize("kind", [TransientError, PermanentError])
def test_without_a_token_all_that_fails_for_lack_of_it_says_why(code, kind, monkeypatch):
    note_token_failure(kind("token endpoint http://a: 503"))
    error = KafkaError(code, 'SASL authentication error: {"status":"invalid_token"}')
    found = port_error("a:1", "list topics", error)
    assert (type(found), str(found)) == (kind, "Kafka a:1: list topics: token endpoint http://a: 503")
    is_final = kind is PermanentError and code == KafkaError._AUTHENTICATION
    assert isinstance(write_error("a:1", "write", error), PermanentError) is is_final
    assert "503" not in str(port_error("a:1", "read", KafkaError(KafkaError.NOT_CONTROLLER)))
    note_token()
    assert isinstance(port_error("a:1", "list topics", error), TransientError)  # the client has yet to ask for one
    monkeypatch.setattr(errors, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + errors.NEXT_ASK_S))
    assert "503" not in str(port_error("a:1", "list topics", error))


def test_brokers_that_refuse_a_good_token():
    error = KafkaError(KafkaError._AUTHENTICATION, 'SASL authentication error: {"status":"invalid_token"}')
    with pytest.raises(PermanentError, match="check that the brokers accept the provider's tokens"):
        raise port_error("a:1", "list topics", error)


def test_a_wrong_password_stays_wrong():
    error = KafkaError(KafkaError._AUTHENTICATION, "Authentication failed: Invalid username or password")
    assert isinstance(port_error("a:1", "list topics", error), PermanentError)
    assert isinstance(write_error("a:1", "write", error), PermanentError)
