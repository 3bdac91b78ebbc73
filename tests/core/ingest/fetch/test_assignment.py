"""What a change of the assignment leaves of what was fetched ahead."""

from kgs_core.model import TopicPartition
from tests.core.ingest.fetch.test_session import read_all


def test_what_is_held_of_partitions_that_stay_is_kept_and_comes_first(kafka, opened, topic, monkeypatch):
    """A late table or a handover changes the assignment; all that was fetched of the others was fetched again."""
    names = [topic(), topic(2)]
    tps = [TopicPartition(names[0], 0), TopicPartition(names[1], 0), TopicPartition(names[1], 1)]
    for tp in tps:
        for i in range(50):
            kafka.produce(tp.topic, b"%d-%d" % (tp.partition, i), partition=tp.partition)
    kafka.flush()
    session = opened()
    at = dict.fromkeys(tps, 0)
    for _ in range(20):  # the client has asked for all of them
        session.gather(at, 1 << 20, 3600, 0.1)
    held = session._waiting_bytes
    polls = []
    with monkeypatch.context() as patch:
        patch.setattr(session, "_poll", lambda *_, **__: polls.append(1) or 0)
        del at[tps[1]]
        fetched = session.gather(at, 60, 0.0, 0.0)
        assert (set(fetched.ranges) <= set(at), fetched.records > 5, polls) == (True, True, [])
        at |= {tp: span.end for tp, span in fetched.ranges.items()}
        at[tps[1]] = 7
        fetched = session.gather(at, 60, 0.0, 0.0)
        assert (fetched.records > 5, polls) == (True, [])
        at |= {tp: span.end for tp, span in fetched.ranges.items()}
        assert 0 < session._waiting_bytes < held
    native, _ = read_all(session, at, dict.fromkeys(tps, 50))
    assert {place: row[0] for place, row in native.items()} == {
        (tp.topic, tp.partition, n): b"%d-%d" % (tp.partition, n) for tp in tps for n in range(at[tp], 50)
    }


def test_what_is_held_of_a_topic_that_was_made_again_is_dropped(kafka, opened, topic, monkeypatch):
    """Under the same name and from the same offset; the new one's records are to be asked for."""
    tp = TopicPartition(topic(), 0)
    for i in range(5):
        kafka.produce(tp.topic, b"%d" % i)
    kafka.flush()
    session = opened()
    session.topic_ids = {tp.topic: "A"}
    for _ in range(50):
        session.gather({tp: 0}, 1 << 20, 3600, 0.1)
        if session._has_held():
            break
    session.topic_ids = {tp.topic: "B"}
    with monkeypatch.context() as patch:
        patch.setattr(session, "_poll", lambda *_, **__: 0)
        assert not session.gather({tp: 0}, 1 << 20, 0.0, 0.0).ranges
        assert not session._has_held()
    native, _ = read_all(session, {tp: 0}, {tp: 5})
    assert len(native) == 5
