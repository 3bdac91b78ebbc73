"""What is worth another try, and what is said of it."""

import pytest
from confluent_kafka import KafkaError

from kgs_core.adapters.kafka.errors import port_error
from kgs_core.errors import PermanentError, TransientError


def told(code: int, cause: KafkaError | None = None) -> Exception:
    return port_error("a:1,b:2", "create topic 't'", KafkaError(code), cause)


@pytest.mark.parametrize(
    "code", [KafkaError._DESTROY_BROKER, KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.NOT_CONTROLLER]
)
def test_what_passes_is_worth_another_try(code):
    assert isinstance(told(code), TransientError)


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.TOPIC_AUTHORIZATION_FAILED])
def test_what_gives_the_same_answer_again_is_not(code):
    assert isinstance(told(code), PermanentError)


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
