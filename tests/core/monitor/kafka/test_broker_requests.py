"""Headers of record batches, and brokers that answer late or never."""

import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaConnectionError

from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka import broker_requests
from kgs_core.monitor.kafka.broker_requests import Batches, BrokerRequests, LogSizes, sum_batches

TP = TopicPartition("t", 0)
ROOM = 61 - 12


def batch(offsets, length=ROOM + 100, magic=2):
    head = struct.pack(">qiibihi", 0, length, 0, magic, 0, 0, offsets - 1)
    return head.ljust(12 + length, b"x")


def test_batches_are_counted_by_their_headers():
    assert sum_batches(batch(10) + batch(1) + batch(500, length=1000)) == Batches(161 + 161 + 1012, 511)


def test_a_batch_that_is_cut_off_is_left_out():
    assert sum_batches(batch(10) + batch(7)[:-1]) == Batches(161, 10)
    assert sum_batches(batch(10)[:20]) == Batches(0, 0)


@pytest.mark.parametrize("data", [b"", batch(10, magic=1), batch(10, length=0), struct.pack(">qi", 0, -1) + b"x" * 99])
def test_what_says_nothing_of_its_records_counts_nothing(data):
    assert sum_batches(data) == Batches(0, 0)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_error(data):
    found = sum_batches(data)
    assert found.stored_bytes <= len(data)


class Brokers:
    """Stands for kafka-python's client: what each broker does when it is asked."""

    def __init__(self, **answers):
        self.answers = {int(name.removeprefix("b")): answer for name, answer in answers.items()}
        self.asked = []

    def describe_log_dirs(self, wanted, brokers):
        assert wanted == {"t": [0]}
        self.asked.append(brokers[0])
        answer = self.answers[brokers[0]]
        return [{"broker": brokers[0], "log_dirs": answer() if callable(answer) else answer}]

    def close(self):
        pass


def logs(*sizes):
    return [
        {
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {"partition_index": 0, "partition_size": size, "is_future_key": future}
                        for size, future in sizes
                    ],
                }
            ]
        }
    ]


@pytest.fixture
def requests_to():
    made = []

    def build(timeout_s=5.0, **answers):
        requests = BrokerRequests(Brokers(**answers), timeout_s)
        made.append(requests)
        return requests

    yield build
    for requests in made:
        requests.close()


def test_a_replica_on_its_way_to_another_disk_does_not_count(requests_to):
    (answer,) = requests_to(b1=logs((500, False)) + logs((90, True))).log_sizes({1: [TP]})[1]
    assert isinstance(answer, LogSizes)
    assert (answer.sizes, answer.refused) == ({TP: 500}, False)


def test_an_empty_answer_is_a_refusal_and_an_empty_directory_is_none(requests_to):
    answers = requests_to(b1=[], b2=[{"topics": []}]).log_sizes({1: [TP], 2: [TP]})
    assert [answer.refused for answer in answers[1] + answers[2]] == [True, False]


def test_a_broker_that_fails_does_not_touch_the_others(requests_to):
    def fail():
        raise KafkaConnectionError("gone")

    answers = requests_to(b1=fail, b2=logs((7, False))).log_sizes({1: [TP], 2: [TP]})
    assert answers[1] == ["broker 1 did not answer: KafkaConnectionError: gone"]
    assert answers[2][0].sizes == {TP: 7}


def test_a_broker_that_is_slow_holds_up_nobody_and_is_not_asked_twice(requests_to):
    may_answer = threading.Event()

    def wait():
        may_answer.wait(20)
        return logs((9, False))

    requests = requests_to(timeout_s=0.2, b1=wait, b2=logs((7, False)))
    first = requests.log_sizes({1: [TP], 2: [TP]})
    assert first[1] == ["broker 1 did not answer in 0.2 s"]
    assert first[2][0].sizes == {TP: 7}
    assert requests.log_sizes({1: [TP], 2: [TP]})[1] == ["broker 1 still does not answer"]
    assert requests._client.asked.count(1) == 1
    may_answer.set()
    requests._busy[1].result(10)
    assert requests.log_sizes({1: [TP]})[1][0].sizes == {TP: 9}


class CountingBrokers(Brokers):
    """Brokers that tell the number of a partition as its size; one falls silent after so many requests."""

    def __init__(self, silent_after):
        super().__init__()
        self.left = silent_after
        self.sizes_asked = []

    def describe_log_dirs(self, wanted, brokers):
        if brokers == [1] and not self.left:
            raise KafkaConnectionError("gone")
        self.left -= brokers == [1]
        self.sizes_asked.append((brokers[0], len(wanted["t"])))
        partitions = [{"partition_index": n, "partition_size": n, "is_future_key": False} for n in wanted["t"]]
        return [{"broker": brokers[0], "log_dirs": [{"topics": [{"name": "t", "partitions": partitions}]}]}]


@pytest.mark.parametrize("silent_after", [0, 1, 2, 99])
def test_a_broker_of_many_partitions_is_asked_part_by_part(monkeypatch, silent_after):
    """What it has told before it fell silent counts; what is left is not asked for."""
    monkeypatch.setattr(broker_requests, "SIZES_AT_ONCE", 10)
    wanted = {1: [TopicPartition("t", n) for n in range(25)], 2: [TopicPartition("t", n) for n in range(100, 112)]}
    requests = BrokerRequests(brokers := CountingBrokers(silent_after), 5.0)
    try:
        answers = requests.log_sizes(wanted)
    finally:
        requests.close()
    told = {n: [each.sizes for each in answers[n] if isinstance(each, LogSizes)] for n in wanted}
    parts = [range(10), range(10, 20), range(20, 25)][:silent_after]
    assert told[1] == [{TopicPartition("t", n): n for n in part} for part in parts]
    assert sum(map(len, told[2])) == 12
    assert [each for each in answers[1] if isinstance(each, str)] == (
        [] if silent_after >= 3 else ["broker 1 did not answer: KafkaConnectionError: gone"]
    )
    assert max(count for _, count in brokers.sizes_asked) == 10
