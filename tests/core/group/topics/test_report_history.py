"""Reports of a range of time, on librdkafka's own cluster."""

from types import SimpleNamespace

from confluent_kafka import Producer

from kgs_core.group.protocol import Incarnation, Member, Phase, Report
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics import report_history
from kgs_core.group.topics.report_history import load_usage
from kgs_core.group.topics.topics import GroupTopic
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.usage import Period
from tests.processes import a_process

OWNED = frozenset({TopicPartition("a", 0)})


def report(consumer, sequence, *, owned=frozenset(), phase=Phase.READING):
    member = Member(ConsumerId(consumer), Incarnation(f"of-{consumer}"))
    return Report(member, sequence, phase, 0.0, None, a_process(consumer), 0, owned)


REPORTS = (report(1, 1, owned=OWNED), report(1, 2, phase=Phase.ENDED), report(2, 1, owned=OWNED))


def test_what_the_topic_holds_of_a_time_is_counted(kafka, monkeypatch):
    settings = kafka.settings()
    topic = GroupTopic.REPORTS.of(settings.group)
    kafka.topic(topic)
    records = [encode(each) for each in REPORTS]
    admin = SimpleNamespace(  # this cluster describes no topics
        describe=lambda _: {topic},
        offsets=lambda tps, _: dict.fromkeys(tps, 0),
        offsets_at=lambda tps, time_ms: dict.fromkeys(tps, len(records) if time_ms else 0),
    )
    monkeypatch.setattr(report_history, "admin_of", lambda _: admin)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, 0, timestamp=1234)
    assert producer.flush(20) == 0
    found = load_usage(settings, Period(0, 10_000))
    assert found.refused == 0
    assert [(h.partition, h.before, h.after) for h in found.handovers] == [(*OWNED, 1, 2)]
