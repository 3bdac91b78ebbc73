import json
import os
import signal
from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka.paced_producer import FlightProducer, Tally, next_until
from kgs_core.system.shutdown import StopFlag, stop_on_signals


def message(topic, partition, value):
    class Delivered(SimpleNamespace):
        def __len__(self):
            return len(value)

    return Delivered(topic=lambda: topic, partition=lambda: partition)


@pytest.mark.parametrize(
    ("sent_until", "now", "slice_s", "until"),
    [(9.95, 10.0, 0.05, 10.0), (10.0, 40.0, 0.05, 10.1), (10.0, 40.0, 0.5, 11.0), (10.0, 400.0, 300.0, 12.0)],
    ids=["the clock's", "doubled at most after a hold-up", "of any slice", "that stays short"],
)
def test_the_pace(sent_until, now, slice_s, until):
    assert next_until(sent_until, now, slice_s) == pytest.approx(until)


def test_only_delivered_records_are_counted():
    tally = Tally()
    tally.count(None, message("flights.jfk", 3, b"12345"))
    tally.count(None, message("flights.jfk", 3, b"12345"))
    tally.count(None, message("flights.ewr", 0, b"1"))
    tally.count("timed out", message("flights.ewr", 0, b"1"))
    assert tally.delivered == 3
    assert tally.report(finished=True) == {
        "finished": True,
        "records": {"flights.ewr": 1, "flights.jfk": 2},
        "bytes": {"flights.ewr": 1, "flights.jfk": 10},
        "partitions": {"flights.ewr:0": 1, "flights.jfk:3": 2},
        "failed": 1,
        "replayed_s": 0.0,
        "behind_s": 0.0,
    }


def test_signal_sets_the_flag_and_the_old_handler_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        assert not stop.is_set
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set
    assert signal.getsignal(signal.SIGTERM) is before


def test_unanswered_records_are_an_error_and_the_tally_is_not_finished(tmp_path):
    producer = FlightProducer({"bootstrap.servers": "localhost:1"}, tmp_path / "tally.json")
    with pytest.raises(TransientError, match="1 records unanswered"):
        producer.run(lambda from_s, _: [("t", b"k", b"v")] if from_s == 0 else [], StopFlag(), 0.2, flush_s=0.1)
    tally = json.loads((tmp_path / "tally.json").read_text())
    assert (tally["finished"], tally["records"], tally["replayed_s"]) == (False, {}, 0.2)
    assert [path.name for path in tmp_path.iterdir()] == ["tally.json"]


def test_full_queue_does_not_hold_up_the_stop():
    stop = StopFlag()
    producer = FlightProducer({"bootstrap.servers": "localhost:1", "queue.buffering.max.messages": 1})

    def due(_from_s, _to_s):
        yield "t", b"k", b"v"
        stop.set()
        yield "t", b"k", b"v"

    with pytest.raises(TransientError, match="1 records unanswered"):
        producer.run(due, stop, flush_s=0.1)


def test_refused_setting_is_a_permanent_error():
    with pytest.raises(PermanentError, match="client settings"):
        FlightProducer({"bootstrap.servers": "localhost:1", "no.such.setting": 1})
