"""What a failed write leaves behind, whatever its abort has said; a client from memory."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from kgs_core.errors import TransientError
from kgs_core.group.protocol import Incarnation, Member, MemberAssignment
from kgs_core.group.topics import controller_writer
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.model import ConsumerId, TopicPartition

GIVES = MemberAssignment(Member(ConsumerId(1), Incarnation("x")), frozenset())


class Client:
    """Delivers nothing; its aborts work."""

    aborts = 0

    def init_transactions(self, _timeout_s):
        pass

    def begin_transaction(self):
        pass

    def produce(self, *_, **__):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def abort_transaction(self, _timeout_s):
        self.aborts += 1


@pytest.fixture
def client(monkeypatch):
    client = Client()
    monkeypatch.setattr(controller_writer, "make_producer", lambda *_: client)
    return client


def topics_of(settings):
    """The group's topics with these settings of `kafka.client`."""
    return SimpleNamespace(
        settings=SimpleNamespace(
            group="g", kafka=SimpleNamespace(bootstrap_servers="broker:1", client=settings, token_function=None)
        ),
        name=lambda _: "kgs.g.consumer.metadata",
        check=lambda: None,
        queue=int,
        extra_time_s=0.0,
        written={},
    )


@pytest.mark.parametrize(("given_ms", "used_ms"), [(None, 6500), (20_000, 20_000), (60_000, 25_000)])
def test_requests_end_when_people_want_or_with_the_write(monkeypatch, given_ms, used_ms):
    """librdkafka refuses a time-out above the transaction's."""
    made = []
    monkeypatch.setattr(controller_writer, "make_producer", lambda _, config: made.append(config) or Client())
    KafkaControllerWriter(topics_of({} if given_ms is None else {"socket.timeout.ms": given_ms})).fence()
    assert made[0]["socket.timeout.ms"] == used_ms


def test_a_write_that_failed_takes_the_right_to_write_though_its_abort_worked(client):
    """Kafka may have forgotten the abort's marker: the next commit of the same epoch would commit what was aborted."""
    topics = topics_of({})
    writer = KafkaControllerWriter(topics)
    writer.fence()
    # Committed and not seen to be read yet; what failed may stand behind it in the same open transaction
    topics.written[TopicPartition("kgs.g.consumer.metadata", 1)] = 4, 0.0
    with pytest.raises(TransientError, match="not written"):
        writer.write(None, [GIVES], [])
    assert client.aborts == 1
    assert topics.written == {}
    with pytest.raises(TransientError, match="no right to write: fence"):
        writer.write(None, [GIVES], [])
    assert client.aborts == 1
