"""Counters count what happens from the first look on, once, whatever is read again."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import Change, Ending, Incarnation, Member, Phase, Received, Report, Target, WorkDone
from kgs_core.metrics import METRICS, MetricKind
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.triggers import ExitCondition, Reason
from kgs_core.reporting.metric_counters import GroupCounters, Histogram, is_forced, reason_label
from tests.processes import a_process

A = TopicPartition("t", 0)


def target(offset, *changes):
    return Received(
        Target("mwf", {A: ConsumerId(1)}, (), {}, 100.0, 0.0, "why", (), (), 5, history=changes), offset, offset
    )


def report(name, sequence, phase=Phase.READING, owned=(), ms=0, ending=None, **more):
    member = Member(ConsumerId(1), Incarnation(name))
    said = Report(member, sequence, phase, 0.0, None, a_process(), 0, frozenset(owned), ending=ending, **more)
    return Received(said, sequence, ms)


def worked(name, *works):
    return [report(name, n, work=work) for n, work in enumerate(works, 1)]


def failed(name, sequence):
    return report(name, sequence, Phase.ENDED, ending=Ending.FAILED)


def values(counters):
    return {(s.metric, *s.labels): s.value for s in counters.samples() if s.value}


def counted(*looks):
    counters = GroupCounters()
    for look in looks:
        counters.take(look)
    return counters


LOST = "consumer lost: 1; looking for a better packing"
BETTER = "looking for a better packing"
FIRST, SECOND = Change(1, LOST, 3, 0.5, 2), Change(2, BETTER, 2, 0.25, 1)
DONE = replace(FIRST, duration_s=4.0)
MANY = [target(n, *[Change(n, LOST, 1, 0.0, 1) for n in range(max(0, n - 9), n + 1)]) for n in range(50)]
OF_A = worked("a", *(WorkDone(n, n / 2, 1, n * 100, n / 4, n * 1.0, 5) for n in (1, 2, 3)))
OF_B, SILENT = worked("b", WorkDone(10, 1.0)), report("c", 1)
OF_A_SPARE = worked("s", *(WorkDone(cpu_s=float(n)) for n in (1, 2, 3)))
OLD_AGAIN = [target(1, FIRST), target(2, FIRST, SECOND)]


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([[target(1, FIRST)]], {}),
        ([[target(1, FIRST)], [target(2, FIRST, SECOND)], OLD_AGAIN], {
            ("kgs_changes_total", "timeout", "false"): 1,
            ("kgs_moved_partitions_total", "false"): 2,
            ("kgs_rscore_total", "false"): 0.25,
        }),
        ([[], MANY, MANY], {("kgs_changes_total", "lost", "true"): 50, ("kgs_moved_partitions_total", "true"): 50}),
        ([[failed("old", 1)], [report("read", 1), failed("read", 2)], [failed("never", 1)],
          [failed("never", 1), report("old", 2, Phase.ENDED)]],
         {("kgs_consumers_ended_total", "failed"): 2, ("kgs_consumer_start_failures_total",): 1}),
        ([OF_A[:1]], {}),
        ([OF_A[:1], [*OF_A[1:], *OF_B, SILENT], [*OF_A, *OF_A]], {
            ("kgs_commits_total",): 12,
            ("kgs_commit_seconds_total",): 2.0,
            ("kgs_consumer_cpu_seconds_total",): 2.0,
            ("kgs_consumer_full_bytes_total", "1"): 200,
            ("kgs_consumer_full_seconds_total", "1"): 0.5,
        }),
        ([[*worked("a", WorkDone(refused=2, outrun=1)), *worked("old", WorkDone(refused=4))],
          [report("a", 2, work=WorkDone(refused=7, outrun=3)), report("old", 2, work=WorkDone(refused=5))]],
         {("kgs_commits_refused_total", "ahead"): 2, ("kgs_commits_refused_total", "error"): 3,
          ("kgs_commits_refused_total", "other"): 1}),
        ([[*worked("a", WorkDone(same_zone_bytes=5, cross_zone_bytes=0)), *worked("old", WorkDone())],
          [report("a", 2, work=WorkDone(same_zone_bytes=7, cross_zone_bytes=9)), report("old", 2, work=WorkDone())]],
         {("kgs_consumer_zone_bytes_total", "1", "same"): 2, ("kgs_consumer_zone_bytes_total", "1", "across"): 9}),
        ([[], OF_A_SPARE, OF_A_SPARE, OF_A_SPARE], {("kgs_consumer_cpu_seconds_total",): 3.0}),
        ([[], worked("a", *(WorkDone(n, cpu_s=10.0 - n) for n in (1, 2, 3)))],
         {("kgs_commits_total",): 3, ("kgs_consumer_cpu_seconds_total",): 9.0}),
    ],
    ids=[
        "what was there at the first look is not counted",
        "a new connection reads all again",
        "changes older than what is remembered",
        "ends of consumers",
        "the first look at work",
        "work over incarnations and old reports",
        "batches that did not land are told apart where the consumer says why",
        "bytes across zones are not counted where they are not known",
        "a spare's time, read again after each new connection",
        "work counts on where the processor time falls: children that ended take theirs along",
    ],
)  # fmt: skip
def test_what_is_counted_once(looks, expected):
    assert values(counted(*looks)) == expected


def test_times_of_a_change_are_counted_once_when_they_are_known_and_those_that_were_not_measured_not_at_all():
    late = counted([target(1, FIRST)], [target(2, DONE, SECOND)], [target(3, DONE, SECOND)])
    buckets = dict(late.reaction.buckets())
    assert (buckets["2.5"], buckets["5.0"], late.reaction.sum) == (0, 1, 4.0)
    measured = replace(DONE, seen_s=0.5, decided_s=0.25, started_s=1.0)
    both = [target(2, measured, replace(SECOND, duration_s=9.0, started_s=2.0))]
    found = {histogram.metric: histogram.sum for histogram in counted([target(1, FIRST, SECOND)], both).histograms}
    assert found == {
        "kgs_change_reaction_seconds": 13.0,
        "kgs_change_seen_seconds": 0.5,
        "kgs_change_decided_seconds": 0.25,
        "kgs_change_started_seconds": 1.0,
        "kgs_change_handed_over_seconds": 3.0,
        "kgs_partition_unread_seconds": 0.0,
    }


def test_gap_of_a_partition_that_changed_hands():
    taken = [report("two", 1, owned=[A], ms=3_000)]
    counters = counted([report("one", 1, owned=[A], ms=0)], [report("one", 2, ms=1_000)], taken, taken)
    assert (dict(counters.unread.buckets())["+Inf"], counters.unread.sum) == (1, 2.0)


def test_changes_count_on_when_the_topic_was_made_again():
    counters = counted([target(500, FIRST)])
    counters.connected()
    counters.take([target(1, replace(SECOND, time_ms=9))])
    assert values(counters)["kgs_changes_total", "timeout", "false"] == 1


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_label_of_its_own(reason):
    text = str(ExitCondition(reason, (ConsumerId(1),)))
    assert reason_label(f"{text}; something else") == reason.name.lower()
    assert is_forced(text) is (reason is not Reason.TIMEOUT)
    assert is_forced(f"{BETTER}; {Reason.LOST}: 2")
    assert reason_label("2 takes over the unread partitions of 1") == "other"
    assert is_forced("the first assignment")


def test_all_counters_are_there_from_the_beginning():
    names = {s.metric for s in GroupCounters().samples()}
    own = {name for name, m in METRICS.items() if m.kind is MetricKind.COUNTER and "consumer" not in m.labels}
    elsewhere = {"kgs_exporter_errors_total", "kgs_table_dead_letters_total", "kgs_controller_fenced_total"}
    assert names == own - elsewhere


def test_bounds_count_as_below():
    histogram = Histogram("kgs_change_reaction_seconds")
    for value in (0.1, 0.11, 1000.0):
        histogram.add(value)
    buckets = dict(histogram.buckets())
    assert (buckets["0.1"], buckets["0.25"], buckets["300.0"], buckets["+Inf"]) == (1, 2, 2, 3)
