"""Plain values that the live table and the final report are made of."""

import json
from datetime import datetime

from kgs_core.demo.snapshot import lag_of, read_produced, simulated_time
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_core.model import TopicPartition
from tests.core.demo.demo_words import EWR, EWR_0, EWR_1, JFK


def test_lag_is_unknown_when_one_partition_is():
    assert EWR.lag == 100
    assert TableView("t", "t", positions={0: 5}, ends={0: 7, 1: 3}).lag is None
    assert TableView("t", "t", positions={0: 5}, ends={0: None}).lag is None
    assert TableView("t", "t").lag is None
    assert TableView("t", "t", positions={0: 9}, ends={0: 7}).lag == 0
    assert LakeSnapshot((EWR, JFK), ()).lag is None
    assert LakeSnapshot((EWR,), ()).lag == 100


def test_lag_of_some_partitions():
    lake = LakeSnapshot((EWR,), ())
    assert [lag_of(lake, tps) for tps in ([EWR_0], [EWR_1], [EWR_0, EWR_1], [])] == [100, 0, 100, 0]
    assert lag_of(lake, [EWR_0, TopicPartition("flights.lga", 0)]) is None
    assert lag_of(LakeSnapshot((JFK,), ()), [TopicPartition("flights.jfk", 0)]) is None


def test_tally(tmp_path):
    file = tmp_path / "tally.json"
    assert read_produced(file) is None
    file.write_text(
        json.dumps(
            {
                "finished": True,
                "bytes": {"a": 7, "b": 3},
                "partitions": {"a:0": 1, "a:1": 2, "b:0": 4},
                "failed": 0,
                "replayed_s": 2.5,
            }
        )
    )
    produced = read_produced(file)
    assert produced.topics == {"a": 3, "b": 4}
    assert (produced.records, produced.value_bytes, produced.finished) == (7, 10, True)


def test_simulated_time_begins_before_the_first_departures():
    assert simulated_time(0, 432) == datetime.fromisoformat("2013-09-18T04:00")
    assert simulated_time(200, 432) == datetime.fromisoformat("2013-09-19T04:00")
