"""What is worth another try, and what is said of it."""

import pytest
from confluent_kafka import KafkaError

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.errors import port_error
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


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('{"error": "invalid_client"}', PermanentError),
        ('{"error": "unauthorized_client"}', PermanentError),
        ("Failed to connect to issuer.example: Connection refused", TransientError),
        ("Operation timed out", TransientError),
    ],
)
def test_a_token_endpoint_that_is_away_is_no_wrong_password(words, kind):
    error = KafkaError(KafkaError._AUTHENTICATION, f"Failed to acquire SASL OAUTHBEARER token: {words}")
    for found in (port_error("a:1", "list topics", error), write_error("a:1", "write", error)):
        assert type(found) is kind
        assert str(found).endswith("check sasl.oauthbearer.* and that the token endpoint answers")


def test_a_wrong_password_stays_wrong():
    error = KafkaError(KafkaError._AUTHENTICATION, "Authentication failed: Invalid username or password")
    assert isinstance(port_error("a:1", "list topics", error), PermanentError)
    assert isinstance(write_error("a:1", "write", error), PermanentError)
