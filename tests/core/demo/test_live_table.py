"""What people see: the live table, the summary, and the plain values that they are made of."""

import json
from datetime import datetime

import pytest
from rich.console import Console

from kgs_core.adapters.lake_view import LakeSnapshot, TableView
from kgs_core.config import parse_settings
from kgs_core.consumer.share import EqualShare
from kgs_core.demo.closing import compare, reason_to_skip
from kgs_core.demo.live_table import live_table
from kgs_core.demo.replay import TOPICS, open_replay
from kgs_core.demo.run import exit_status
from kgs_core.demo.scene import Scene
from kgs_core.demo.snapshot import (
    ConsumerRow,
    DemoSnapshot,
    Produced,
    lag_of_share,
    read_consumer,
    read_produced,
    simulated_time,
)
from kgs_core.demo.summary import Summary, TopicResult, summary_table, verdict
from kgs_core.invariants import LogPart, StoredPositions, TableAudit, check_partition
from kgs_core.model import TopicId, TopicPartition

EWR = TableView("flights.ewr", "flights.ewr", 1500, 2_500_000, 7, 0, 9, {0: 1000, 1: 500}, {0: 1100, 1: 500})
JFK = TableView("flights.jfk", "flights.jfk")
PRODUCED = Produced({TopicPartition("flights.ewr", 0): 1100, TopicPartition("flights.ewr", 1): 500}, 0, 0, 60.0, True)


def text(renderable, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


def snapshot(*tables, problems=(), produced=PRODUCED):
    consumers = (
        ConsumerRow(1, 4711, 16, 1_234_567.0, 100, 1.25, "reading"),
        ConsumerRow(2, None, None, None, None, None, "dead, again in 4 s"),
    )
    at = datetime.fromisoformat("2013-09-18T11:12")
    return DemoSnapshot("running", 83.4, at, produced, 900_000.0, consumers, LakeSnapshot(tables, problems))


def test_live_table():
    assert text(live_table(snapshot(EWR, JFK))) == [
        "83 s | running | simulated time 2013-09-18 11:12",
        "produced 1,600 records (0.90 MB/s) | in the lake ? rows | lag ?",
        "consumer           pid  partitions  MB/s  lag  latency s  state",
        "1                 4711          16  1.23  100        1.2  reading",
        "2                    ?           ?     ?    ?          ?  dead, again in 4 s",
        "lake table         rows    MB  files  lag",
        "flights.ewr       1,500  2.50      7  100",
        "flights.jfk           ?     ?      ?    ?",
    ]


def test_what_is_not_known_is_never_shown_as_zero():
    nothing = DemoSnapshot("starting", 0.0, None, None, None, (), LakeSnapshot((JFK,), ()))
    shown = "\n".join(text(live_table(nothing)))
    assert "produced ? records (? MB/s) | in the lake ? rows | lag ?" in shown
    assert "simulated time ?" in shown
    assert not any(digit in shown.partition("\n")[2] for digit in "0123456789")


def test_problems_are_told_below_the_table():
    assert text(live_table(snapshot(EWR, problems=("Kafka x:1: no answer",))))[-1] == "? Kafka x:1: no answer"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_a_terminal(width):
    assert all(len(line) <= width for line in text(live_table(snapshot(EWR, JFK)), width))


def test_lag_is_unknown_when_one_partition_is():
    assert EWR.lag == 100
    assert TableView("t", "t", positions={0: 5}, ends={0: 7, 1: 3}).lag is None
    assert TableView("t", "t", positions={0: 5}, ends={0: None}).lag is None
    assert TableView("t", "t").lag is None
    assert TableView("t", "t", positions={0: 9}, ends={0: 7}).lag == 0
    assert LakeSnapshot((EWR, JFK), ()).lag is None
    assert LakeSnapshot((EWR,), ()).lag == 100


def test_shares_have_their_own_lag_and_all_of_it():
    lake = LakeSnapshot((EWR,), ())
    lags = [lag_of_share(lake, EqualShare(index, 2)) for index in (1, 2)]
    assert sorted(lags) == [0, 100]
    assert lag_of_share(LakeSnapshot((), ()), EqualShare(1, 2)) is None


def test_a_status_file_of_an_earlier_process_does_not_count(tmp_path):
    file = tmp_path / "consumer-1.json"
    assert read_consumer(file, 1, 10, "ended", None).state == "starting"
    status = {"pid": 10, "partitions": 16, "consumed_bytes_per_s": 5.5, "latency_s": None, "stopped": {}}
    file.write_text(json.dumps(status))
    assert read_consumer(file, 1, 10, "ended", 3) == ConsumerRow(1, 10, 16, 5.5, 3, None, "reading")
    assert read_consumer(file, 1, 11, "ended", 3) == ConsumerRow(1, 11, None, None, 3, None, "starting")
    assert read_consumer(file, 1, None, "ended", 3).state == "ended"
    file.write_text(json.dumps({**status, "stopped": {"t:0": "gone"}}))
    assert read_consumer(file, 1, 10, "ended", 3).state == "1 partitions stopped"


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


def audited(topic, positions, rows):
    parts = [
        check_partition(StoredPositions(TopicId("i"), p, 0, position), rows[p], [], LogPart(absent="-"), "one_to_one")
        for p, position in positions.items()
    ]
    return TableAudit(topic, topic, "one_to_one", 1, tuple(parts))


def test_compare_counts_what_no_position_knows_of():
    """The audit alone cannot see a record that was produced and never read."""
    import numpy as np

    whole = audited("flights.ewr", {0: 1100, 1: 500}, {0: np.arange(1100), 1: np.arange(500)})
    assert compare(PRODUCED, [whole]) == (TopicResult("flights.ewr", 1600, 1600, 0, 0, 0),)
    short = audited("flights.ewr", {0: 1100}, {0: np.arange(1100)})
    assert compare(PRODUCED, [short]) == (TopicResult("flights.ewr", 1600, 1100, 500, 0, 0),)
    doubled = audited("flights.ewr", {0: 1100, 1: 500}, {0: np.arange(1100), 1: np.r_[:500, :3]})
    assert compare(PRODUCED, [doubled]) == (TopicResult("flights.ewr", 1600, 1603, 0, 3, 0),)


def test_audit_only_when_it_can_prove_something():
    done = LakeSnapshot((TableView("t", "t", positions={0: 5}, ends={0: 5}),), ())
    sent = Produced({}, 0, 0, 1.0, False)
    assert reason_to_skip(snapshot(*done.tables)) == ""
    assert reason_to_skip(snapshot(EWR)) == "100 records were not read yet"
    assert reason_to_skip(snapshot(*done.tables, produced=None)) == "nothing was produced"
    assert reason_to_skip(snapshot(*done.tables, produced=sent)) == "the generator did not say its last word"
    assert (
        reason_to_skip(snapshot(EWR, JFK, problems=("no answer",)))
        == "not known what is unread of flights.jfk: no answer"
    )


EXACT = Summary((TopicResult("a", 10, 10, 0, 0, 0), TopicResult("b", 2000, 2000, 0, 0, 0)), audited=True)
LOST = Summary((TopicResult("a", 10, 9, 1, 0, 0),), audited=True)
UNSEEN = Summary((TopicResult("a", 10, 9, None, None, 1),), audited=False, skipped="1 records were not read yet")
FAILED = Summary(EXACT.topics, audited=True, problems=("consumer 1 did not end in order",))


def test_summary():
    assert text(summary_table(EXACT)) == [
        "topic             records produced  rows in the lake  lost  doubled  unread",
        "a                               10                10     0        0       0",
        "b                            2,000             2,000     0        0       0",
        "all                          2,010             2,010     0        0       0",
    ]
    assert verdict(EXACT) == ["exactly once: 2,010 records produced, 2,010 rows in the lake, lost 0, doubled 0"]
    assert verdict(LOST)[-1].startswith("NOT PROVEN exactly once: 10 records produced, 9 rows in the lake, lost 1")
    assert verdict(UNSEEN) == ["the audit was skipped: 1 records were not read yet"]
    assert verdict(FAILED)[0] == "consumer 1 did not end in order"


@pytest.mark.parametrize(
    ("summary", "timed", "interrupted", "status"),
    [
        (EXACT, True, False, 0),
        (EXACT, True, True, 0),
        (LOST, True, False, 1),
        (LOST, False, True, 1),
        (UNSEEN, True, False, 1),
        (UNSEEN, True, True, 130),
        (UNSEEN, False, True, 0),
        (FAILED, True, False, 1),
        (FAILED, False, True, 1),
    ],
)
def test_exit_status_is_zero_only_for_a_proof_or_an_end_in_order(summary, timed, interrupted, status):
    assert exit_status(summary, timed=timed, interrupted=interrupted) == status


def test_configuration_fits_what_is_produced(tmp_path):
    scene = Scene(tmp_path, 3, 864.0)
    settings = parse_settings(scene.configuration("127.0.0.1:9092").encode(), "kgs.yaml", {})
    seen = set()
    for record in open_replay().due(0, 40):
        assert set(json.loads(record.value)) == set(settings.rule_of(record.topic).fields)
        seen.add(record.topic)
    assert seen == set(TOPICS)


def test_commands_and_environment(tmp_path):
    scene = Scene(tmp_path, 3, 864.0)
    assert scene.consume_command(2)[3:7] == ["consume", "--id", "2", "--share"]
    assert "2/3" in scene.consume_command(2)
    assert "864" in scene.generate_command("h:1")
    environ = scene.environ({"PATH": "p", "KGS_CONFIG": "c", "KGS_SET_LAKE__ROOT": "s3://real", "KGS_CACHE": "k"})
    assert {"PATH", "KGS_CACHE"} <= set(environ)
    assert not {"KGS_CONFIG", "KGS_SET_LAKE__ROOT"} & set(environ)
