"""What people see while it runs: the live table."""

from dataclasses import replace
from datetime import datetime

import pytest

from kgs_core.demo.display import live_table
from kgs_core.demo.snapshot import DemoSnapshot, GroupFigures
from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import Change, Idle, Incarnation, Target
from kgs_core.lake.topics.stats import LakeSnapshot
from kgs_core.model import ConsumerId
from kgs_core.reporting.consumer_rows import ConsumerRow
from tests.a_status import a_status
from tests.core.demo.demo_words import EWR, EWR_0, EWR_1, JFK, PRODUCED
from tests.rendered import lines_of

BEGAN_MS = 1_000_000
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
    late = {EWR_1: "why"} if waiting else {}
    return a_status(target=target, is_converged=not waiting, waiting=late, consumers=lines)


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
    assert lines_of(live_table(snapshot(EWR, JFK))) == [
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
    shown = lines_of(live_table(replace(snapshot(EWR), group=None, problems=("Kafka x:1: no answer",))))
    assert shown[2] == "controller pid 4242 | target ?"
    assert shown[-1] == "? Kafka x:1: no answer"


@pytest.mark.parametrize(
    ("waiting", "converged", "logged"),
    [(3, False, "3 partitions to hand over"), (0, False, "waiting for consumers"), (0, True, "converged")],
)
def test_how_far_a_change_is(waiting, converged, logged):
    seen = replace(group(READING, waiting=0), is_converged=converged, waiting=dict.fromkeys(range(waiting), "why"))
    assert lines_of(live_table(snapshot(EWR, seen=seen)))[2].endswith(f"| {logged}")


def test_partitions_that_stand_still_are_shown():
    stopped = replace(READING, stopped={EWR_0: "gone"})
    assert any("1 partitions stopped" in line for line in lines_of(live_table(snapshot(EWR, seen=group(stopped)))))


def test_what_is_not_known_is_never_shown_as_zero():
    nobody = replace(READING, load=None, bytes_per_s=None, report_age_s=None, process=None)
    nothing = replace(
        snapshot(JFK, produced=None, seen=group(nobody, target=None)), simulated=None, produced_bytes_per_s=None
    )
    shown = "\n".join(lines_of(live_table(nothing)))
    assert "produced ? records (? MB/s) | in the lake ? rows | lag ?" in shown
    assert "simulated time ?" in shown
    assert "target ?" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("1 ")] == [["1", *"??????", "reading"]]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_a_terminal(width):
    assert all(len(line) <= width for line in lines_of(live_table(snapshot(EWR, JFK)), width))


def test_load_waits_for_a_consumer_but_not_where_the_group_sleeps_until_something_is_written():
    asleep = replace(TARGET, assignment={}, idle=Idle(0, {EWR_0: 0}, {EWR.topic: "id"}))
    groups = [group(), group(COMING), group(COMING, READING), group(target=asleep), group(target=None)]
    assert [snapshot(seen=each).can_take_load for each in groups] == [False, False, True, True, False]
