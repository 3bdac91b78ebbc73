"""What people see: the live table, the summary, and the plain values that they are made of."""

import json
from dataclasses import replace
from datetime import datetime

import pytest
from rich.console import Console

from kgs_core.adapters.fleet.host_process import HostProcess
from kgs_core.adapters.lake.stats import LakeSnapshot, TableView
from kgs_core.config import parse_settings
from kgs_core.demo.closing import compare, reason_to_skip
from kgs_core.demo.history import GroupFigures
from kgs_core.demo.layout import Layout
from kgs_core.demo.live_table import live_table
from kgs_core.demo.replay import TOPICS, open_replay
from kgs_core.demo.run import exit_status
from kgs_core.demo.snapshot import DemoSnapshot, Produced, lag_of, read_produced, simulated_time
from kgs_core.demo.summary import Summary, TopicResult, group_lines, summary_table, verdict
from kgs_core.exactly_once import LogPart, StoredPositions, TableAudit, check_partition
from kgs_core.model import ConsumerId, TopicId, TopicPartition
from kgs_core.protocol import Change, Incarnation, Target
from kgs_core.reporting.status import ConsumerRow, ExternalFacts, GroupStatus

EWR = TableView("flights.ewr", "flights.ewr", 1500, 2_500_000, 7, 0, 9, {0: 1000, 1: 500}, {0: 1100, 1: 500})
JFK = TableView("flights.jfk", "flights.jfk")
PRODUCED = Produced({TopicPartition("flights.ewr", 0): 1100, TopicPartition("flights.ewr", 1): 500}, 0, 0, 60.0, True)


def text(renderable, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


BEGAN_MS = 1_000_000
EWR_0, EWR_1, LGA_0 = (
    TopicPartition("flights.ewr", 0),
    TopicPartition("flights.ewr", 1),
    TopicPartition("flights.lga", 0),
)
TARGET = Target(
    algorithm="mwf",
    assignment={EWR_0: ConsumerId(1), EWR_1: ConsumerId(2)},
    spares=(ConsumerId(3),),
    speeds={},
    capacity=180_000.0,
    rscore=0.25,
    reason="spares",
    known=(),
    quarantined=(),
    time_ms=0,
    history=(
        Change(BEGAN_MS + 60_000, "consumer above consumer_capacity: 1", 11, 0.41, 2),
        Change(BEGAN_MS + 70_000, "spares: 1 of 1, 0 before", 0, 0.0, 2),
    ),
)
READING = ConsumerRow(
    consumer=ConsumerId(1),
    incarnation=Incarnation("one"),
    state="reading",
    partitions=(EWR_0,),
    load=123_456.0,
    bytes_per_s=1_234_567.0,
    report_age_s=0.6,
    process=HostProcess("h", "b", 4711, 1).as_process(),
)
COMING = ConsumerRow(ConsumerId(2), None, "not there", needs_attention=True)


def group(*lines, target=TARGET, waiting=1):
    """One in which so many partitions wait for somebody."""
    return GroupStatus(
        "g", True, target, {}, not waiting, {EWR_1: "why"} if waiting else {}, lines, None, ExternalFacts()
    )


def snapshot(*tables, problems=(), produced=PRODUCED, seen=None):
    return DemoSnapshot(
        stage="running",
        elapsed_s=83.4,
        simulated=datetime.fromisoformat("2013-09-18T11:12"),
        produced=produced,
        produced_bytes_per_s=900_000.0,
        lake=LakeSnapshot(tables, problems),
        control="controller pid 4242",
        group=group(READING, COMING) if seen is None else seen,
        figures=GroupFigures(3, 25, 1.25, 2.5, 4),
        began_ms=BEGAN_MS,
    )


def test_live_table():
    assert text(live_table(snapshot(EWR, JFK))) == [
        "83 s | running | simulated time 2013-09-18 11:12",
        "produced 1,600 records (0.90 MB/s) | in the lake ? rows | lag ?",
        "controller pid 4242 | target 2 consumers and 1 spare | 1 partitions to hand over",
        "3 rebalances so far, Rscore 1.25 in all",
        "last change at 60 s: 11 partitions moved, Rscore 0.41, to 2 consumers",
        "  consumer above consumer_capacity: 1",
        "consumer          pid  partitions  load  MB/s  lag  report  state",
        "1                4711           1  0.12  1.23  100     1 s  reading",
        "2                   ?           ?     ?     ?    ?       ?  on its way",
        "lake table        rows    MB  files  lag",
        "flights.ewr      1,500  2.50      7  100",
        "flights.jfk          ?     ?      ?    ?",
    ]


def test_a_group_that_cannot_be_seen_is_not_shown_as_empty():
    shown = text(live_table(replace(snapshot(EWR), group=None, problems=("Kafka x:1: no answer",))))
    assert shown[2] == "controller pid 4242 | target ?"
    assert shown[-1] == "? Kafka x:1: no answer"


@pytest.mark.parametrize(
    ("waiting", "converged", "logged"),
    [(3, False, "3 partitions to hand over"), (0, False, "waiting for consumers"), (0, True, "as it shall be")],
)
def test_how_far_a_change_is(waiting, converged, logged):
    seen = replace(group(READING, waiting=0), is_converged=converged, waiting=dict.fromkeys(range(waiting), "why"))
    assert text(live_table(snapshot(EWR, seen=seen)))[2].endswith(f"| {logged}")


def test_partitions_that_stand_still_are_told():
    stopped = replace(READING, stopped={EWR_0: "gone"})
    assert any("1 partitions stopped" in line for line in text(live_table(snapshot(EWR, seen=group(stopped)))))


def test_what_is_not_known_is_never_shown_as_zero():
    nobody = replace(READING, load=None, bytes_per_s=None, report_age_s=None, process=None)
    nothing = replace(
        snapshot(JFK, produced=None, seen=group(nobody, target=None)), simulated=None, produced_bytes_per_s=None
    )
    shown = "\n".join(text(live_table(nothing)))
    assert "produced ? records (? MB/s) | in the lake ? rows | lag ?" in shown
    assert "simulated time ?" in shown
    assert "target ?" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("1 ")] == [["1", *"??????", "reading"]]


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


def test_lag_of_some_partitions():
    lake = LakeSnapshot((EWR,), ())
    assert [lag_of(lake, tps) for tps in ([EWR_0], [EWR_1], [EWR_0, EWR_1], [])] == [100, 0, 100, 0]
    assert lag_of(lake, [EWR_0, LGA_0]) is None
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
        "topic            records produced  rows in the lake  lost  doubled  unread",
        "a                              10                10     0        0       0",
        "b                           2,000             2,000     0        0       0",
        "all                         2,010             2,010     0        0       0",
    ]
    assert verdict(EXACT) == ["exactly once: 2,010 records produced, 2,010 rows in the lake, lost 0, doubled 0"]
    assert verdict(LOST)[-1].startswith("NOT PROVEN exactly once: 10 records produced, 9 rows in the lake, lost 1")
    assert verdict(UNSEEN) == ["the audit was skipped: 1 records were not read yet"]
    assert verdict(FAILED)[0] == "consumer 1 did not end in order"


def test_what_happened_to_the_group():
    assert group_lines(GroupFigures(3, 25, 1.254, 2.46, 4)) == [
        "3 rebalances moved 25 partitions, Rscore 1.25 in all",
        "consumers: 2.5 in the mean, 4 at most (spares not counted)",
    ]
    assert group_lines(GroupFigures(0, 0, 0.0, None, 0))[1].startswith("consumers: ? in the mean")


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
    scene = Layout(tmp_path, 864.0)
    settings = parse_settings(scene.configuration("127.0.0.1:9092").encode(), "kgs.yaml", {})
    seen = set()
    for record in open_replay().due(0, 40):
        assert set(json.loads(record.value)) == set(settings.rule_of(record.topic).fields)
        seen.add(record.topic)
    assert seen == set(TOPICS)


def test_noon_needs_more_consumers_than_the_night_and_no_more_than_there_may_be(tmp_path):
    """About 0.6 MB/s as Kafka stores it at the peak; next to nothing at night."""
    packing = parse_settings(Layout(tmp_path).configuration("127.0.0.1:9092").encode(), "kgs.yaml", {}).packing
    assert 2 < 600_000 / packing.packing_capacity_bytes_per_s <= packing.max_consumers


def test_commands_and_environment(tmp_path):
    scene = Layout(tmp_path, 864.0)
    command = scene.control_command(end_with=4711)
    assert command[4:] == [
        "control", "--config", f"{tmp_path}/kgs.yaml", "--log-dir", f"{tmp_path}/consumers", "--end-with", "4711",
    ]  # fmt: skip
    assert "864" in scene.generate_command("h:1")
    environ = scene.environ({"PATH": "p", "KGS_CONFIG": "c", "KGS_SET_LAKE__ROOT": "s3://real", "KGS_CACHE": "k"})
    assert {"PATH", "KGS_CACHE"} <= set(environ)
    assert not {"KGS_CONFIG", "KGS_SET_LAKE__ROOT"} & set(environ)
