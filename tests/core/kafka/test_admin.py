"""What is made of Kafka's answers, without a broker: those that today's brokers no longer give."""

import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Uuid
from confluent_kafka import TopicPartition as ClientTopicPartition

from kgs_core.errors import TransientError, UnsafeError
from kgs_core.kafka import admin as admin_module
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import TopicPartition


def admin_that_answers(**topic_ids):
    def describe_topics(wanted, request_timeout):
        assert request_timeout > 0
        assert wanted is not None
        answers = {}
        for topic, topic_id in topic_ids.items():
            answers[topic] = Future()
            answers[topic].set_result(SimpleNamespace(topic_id=topic_id, partitions=[]))
        return answers

    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:9"})
    admin._made = SimpleNamespace(
        get=lambda: SimpleNamespace(describe_topics=describe_topics),
        keep=lambda client, instead_of: None,
    )
    return admin


def test_a_topic_without_an_id_is_refused():
    """Brokers before 2.8 have none: every topic would be "the same" as the one it was made again after."""
    admin = admin_that_answers(a=Uuid(1, 2), old=Uuid(0, 0))
    with pytest.raises(UnsafeError, match=r"topic 'old' has no id.*brokers of Kafka 3\.6 or later"):
        admin.describe(["a", "old"])
    assert admin_that_answers(a=Uuid(1, 2)).describe(["a"])["a"].topic_id == "AAAAAAAAAAEAAAAAAAAAAg"


def test_asking_again_after_a_new_leader_takes_no_longer_than_asking_once(monkeypatch):
    """Kafka's leaders may change while a broker is lost: to look for the new ones must not take the time twice more."""
    given, tp = [], TopicPartition("a", 0)

    def ask(_clients, _question, timeout_s, *_, **__):
        given.append(timeout_s)
        return {ClientTopicPartition(*tp): KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)}

    monkeypatch.setattr(admin_module, "ask", ask)
    began = time.monotonic()
    with pytest.raises(TransientError, match="latest offsets of a:0"):
        KafkaAdmin({"bootstrap.servers": "127.0.0.1:9"}, timeout_s=0.5).offsets([tp], "latest")
    assert time.monotonic() - began + sum(given[1:]) < 1.5, "twice the time-out: offsets are asked beyond an election"
