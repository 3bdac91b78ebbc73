"""One broker of three that does not answer: on librdkafka's mock cluster, and by futures alone."""

import gc
import time
from concurrent.futures import Future
from itertools import count
from threading import BoundedSemaphore, Event, Timer

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from kgs_core.errors import ConfigError, TransientError
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.kafka import silent_brokers
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import TIME_OUTS, admin_client, reading_client
from kgs_core.kafka.silent_brokers import ask, first
from kgs_core.model import TopicPartition
from tests.mock_kafka import mock_kafka
from tests.waiting import wait_until

NEVER_S = 3600.0


@pytest.fixture
def three():
    with mock_kafka(brokers=3) as kafka:
        yield kafka


@pytest.fixture(params=["killed", "frozen"])
def lose(request, three):
    return three.kill if request.param == "killed" else lambda broker: three.slow(broker, NEVER_S)


class Clients:
    """`RotatingClient` of clients that are numbers."""

    def __init__(self):
        self.made, self.used = 1, 1

    def get(self):
        return self.used

    def another(self):
        self.made += 1
        return self.made

    def keep(self, client, instead_of):
        assert instead_of == self.used
        self.used = client


def answered_by(*numbers, error=None, keys="ab"):
    """Question that only these clients have an answer to."""
    asked = []

    def question(client, timeout_s):
        asked.append(client)
        futures = {key: Future() for key in keys}
        if client in numbers:
            for key, future in futures.items():
                future.set_result((key, client))
        elif error is not None:
            for future in futures.values():
                future.set_exception(KafkaException(KafkaError(error)))
        return futures

    return asked, question


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(silent_brokers, "REPEAT_S", 0.02)
    monkeypatch.setattr(silent_brokers, "_GRACE_S", 0.01)


@pytest.mark.parametrize("error", [None, KafkaError._TRANSPORT])
def test_a_question_waits_with_its_repetition_while_others_repeat_theirs(error, hurried, monkeypatch):
    repeating = BoundedSemaphore(1)
    monkeypatch.setattr(silent_brokers, "_repeating", repeating)
    repeating.acquire()
    Timer(10 * silent_brokers.REPEAT_S, repeating.release).start()
    assert ask(Clients(), answered_by(2, error=error)[1], 5.0)["a"] == ("a", 2)
    assert repeating.acquire(blocking=False)


@pytest.mark.parametrize("error", [None, KafkaError._TRANSPORT])
@pytest.mark.parametrize("who", [1, 2, 3])
def test_a_question_is_repeated_until_a_client_has_an_answer_and_that_one_is_used_from_then_on(who, error, hurried):
    clients, (asked, question) = Clients(), answered_by(who, error=error)
    assert ask(clients, question, 5.0) == {"a": ("a", who), "b": ("b", who)}
    assert asked == list(range(1, who + 1))
    assert clients.used == who
    assert ask(clients, question, 5.0)["a"] == ("a", who)
    assert asked == [*range(1, who + 1), who]


def test_a_client_without_an_answer_is_not_thrown_away_while_no_other_has_one(hurried):
    clients, (asked, question) = Clients(), answered_by()
    with pytest.raises(TimeoutError):
        ask(clients, question, 0.2)
    assert asked == [1, 2, 3]
    assert clients.used == 1


def test_a_client_that_comes_after_the_end_is_asked_with_a_time_out_all_the_same(hurried):
    class Late(Clients):
        def another(self):
            time.sleep(0.3)
            return super().another()

    given = []

    def question(client, timeout_s):
        given.append(timeout_s)
        return {"a": Future()}

    with pytest.raises(TimeoutError):
        ask(Late(), question, 0.1)
    assert len(given) > 1
    assert min(given) > 0


def test_what_changes_something_is_sent_once(hurried):
    clients, (asked, question) = Clients(), answered_by(2)
    with pytest.raises(TimeoutError):
        ask(clients, question, 0.1, once=True)
    assert asked == [1]


def test_clients_that_are_not_kept_are_gone_at_once(three, lose):
    """They hold threads and sockets; a process may be long without a garbage collection."""
    three.topic("a")
    three.new_epoch("a", leader=3)
    admin = KafkaAdmin(admin_client(three.settings()), timeout_s=2.5)
    admin.list_topics()
    before = psutil.Process().num_threads()
    lose(3)
    gc.disable()
    try:
        for _ in range(2):
            assert isinstance(admin.each_offset([TopicPartition("a", 0)], "latest")["a", 0], TransientError)
            admin.list_topics()
        wait_until(lambda: psutil.Process().num_threads() <= before, 20, "the clients have ended")
    finally:
        gc.enable()


def test_a_refusal_is_an_answer(hurried):
    clients, (asked, question) = Clients(), answered_by(error=KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert ask(clients, question, 5.0)["a"].name() == "TOPIC_AUTHORIZATION_FAILED"
    assert asked == [1]


def test_of_partial_answers_the_fullest_is_given(hurried):
    def question(client, _timeout_s):
        found = {key: Future() for key in "abc"}
        for number, future in enumerate(found.values(), 1):
            if number < min(client, 3):
                future.set_result(client)
            else:
                future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return found

    found = ask(Clients(), question, 0.1)
    assert (found["a"], found["b"], found["c"].name()) == (3, 3, "_TIMED_OUT")


@pytest.mark.parametrize("silent", [0, 1, 4])
def test_a_connection_is_made_beside_those_that_are_not(silent, hurried):
    begun, ended, waiting = count(), [], Event()

    def connect():
        if (number := next(begun)) < silent:
            waiting.wait()
        return number

    assert first(connect, ended.append) == silent
    waiting.set()
    wait_until(lambda: sorted(ended) == list(range(silent)), 5, "the late ones are ended")


@pytest.mark.parametrize("error", [ConfigError(["x"]), TransientError("x")])
def test_a_connection_that_is_refused_says_why_and_is_not_tried_again(error, hurried):
    begun = count()

    def connect():
        next(begun)
        raise error

    with pytest.raises(type(error)):
        first(connect, lambda _: None)
    assert next(begun) == 1


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_questions_are_answered_while_one_broker_does_not(three, lose, lost):
    three.topic("a", 3)
    tps = [TopicPartition("a", n) for n in range(3)]
    for tp in tps:
        three.new_epoch("a", tp.partition, leader=lost % 3 + 1)
    admin = KafkaAdmin(admin_client(three.settings()))
    assert admin.list_topics() == ["a"]
    lose(lost)
    began = time.monotonic()
    for _ in range(10):
        assert admin.list_topics() == ["a"]
        assert admin.each_offset(tps, "latest") == dict.fromkeys(tps, 0)
    assert time.monotonic() - began < TIME_OUTS["socket.timeout.ms"] / 1000, "each question waits for the lost broker"


def test_a_leader_that_is_slow_by_seconds_is_waited_for(three):
    three.topic("a")
    three.new_epoch("a", leader=3)
    three.slow(3, 2.5)
    admin = KafkaAdmin(admin_client(three.settings()))
    tp = TopicPartition("a", 0)
    wait_until(lambda: admin.each_offset([tp], "latest") == {tp: 0}, 20, "an answer of the slow leader")


def test_a_lost_leader_takes_no_longer_than_the_time_out(three, lose):
    three.topic("a")
    three.new_epoch("a", leader=3)
    admin = KafkaAdmin(admin_client(three.settings()), timeout_s=3.0)
    lose(3)
    found = admin.each_offset([TopicPartition("a", 0)], "latest")
    assert isinstance(found["a", 0], TransientError)


def read(session, start, wanted):
    """Records of each partition that a session gives out until there are `wanted` of all of them."""
    found, positions = {}, dict(start)

    def more():
        fetched = session.gather(positions, 1_000_000, 0.0, 0.5)
        for tp, span in fetched.ranges.items():
            found[tp] = found.get(tp, 0) + span.end - span.start
            positions[tp] = span.end
        return sum(found.values()) >= wanted

    wait_until(more, 20, f"{wanted} records more than {start}")
    return found, positions


def produce(kafka, partition):
    """One record by a client that knows of no loss."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **TIME_OUTS})
    producer.produce("a", b"2", partition=partition)
    assert producer.flush(30) == 0


def test_records_are_read_on_and_those_of_the_lost_leader_once_there_is_another(three, lose):
    three.topic("a", 2)
    tps = [TopicPartition("a", n) for n in (0, 1)]
    for tp, leader in zip(tps, (1, 3), strict=True):
        three.new_epoch("a", tp.partition, leader=leader)
        three.produce("a", b"1", partition=tp.partition)
    three.flush()
    session = NativeFetchSession({**reading_client(three.settings()), "socket.timeout.ms": 2000})
    try:
        _, positions = read(session, dict.fromkeys(tps, 0), 2)
        lose(3)
        produce(three, 0)
        found, positions = read(session, positions, 1)
        assert found == {tps[0]: 1}
        three.new_epoch("a", 1, leader=2)
        produce(three, 1)
        found, _ = read(session, positions, 1)
        assert found == {tps[1]: 1}
    finally:
        session.close()
