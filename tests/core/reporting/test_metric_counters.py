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


def values(counters):
    return {(s.metric, *s.labels): s.value for s in counters.samples() if s.value}


LOST = "consumer lost: 1; looking for a better packing"
BETTER = "looking for a better packing"
FIRST, SECOND = Change(1, LOST, 3, 0.5, 2), Change(2, BETTER, 2, 0.25, 1)


def test_changes_are_counted_once_from_the_first_look_on():
    counters = GroupCounters()
    counters.take([target(1, FIRST)])
    assert values(counters) == {}
    counters.take([target(2, FIRST, SECOND)])
    again = values(counters)
    assert again == {
        ("kgs_changes_total", "timeout", "false"): 1,
        ("kgs_moved_partitions_total", "false"): 2,
        ("kgs_rscore_total", "false"): 0.25,
    }
    counters.take([target(1, FIRST), target(2, FIRST, SECOND)])  # a new connection reads all again
    assert values(counters) == again


def test_changes_older_than_what_is_remembered_are_not_counted_again():
    counters = GroupCounters()
    counters.take([])
    every = [Change(n, LOST, 1, 0.0, 1) for n in range(50)]
    written = [target(n, *every[max(0, n - 9) : n + 1]) for n in range(50)]
    counters.take(written)
    counters.take(written)
    assert values(counters)["kgs_changes_total", "lost", "true"] == 50


def test_duration_that_becomes_known_later_is_counted_once():
    counters = GroupCounters()
    counters.take([target(1, FIRST)])
    done = Change(1, LOST, 3, 0.5, 2, duration_s=4.0)
    counters.take([target(2, done, SECOND)])
    counters.take([target(3, done, SECOND)])
    assert dict(counters.reaction.buckets())["5.0"] == 1
    assert dict(counters.reaction.buckets())["2.5"] == 0
    assert counters.reaction.sum == 4.0


def test_times_of_a_change_are_counted_apart_and_those_of_none_that_was_measured_not_at_all():
    counters = GroupCounters()
    counters.take([target(1, FIRST, SECOND)])
    done = Change(1, LOST, 3, 0.5, 2, duration_s=4.0, seen_s=0.5, decided_s=0.25, started_s=1.0)
    counters.take([target(2, done, replace(SECOND, duration_s=9.0, started_s=2.0))])
    found = {histogram.metric: histogram.sum for histogram in counters.histograms}
    assert found == {
        "kgs_change_reaction_seconds": 13.0,
        "kgs_change_seen_seconds": 0.5,
        "kgs_change_decided_seconds": 0.25,
        "kgs_change_started_seconds": 1.0,
        "kgs_change_handed_over_seconds": 3.0,
        "kgs_partition_unread_seconds": 0.0,
    }


def test_gap_of_a_partition_that_changed_hands():
    counters = GroupCounters()
    counters.take([report("one", 1, owned=[A], ms=0)])
    counters.take([report("one", 2, ms=1_000)])
    counters.take([report("two", 1, owned=[A], ms=3_000)])
    counters.take([report("two", 1, owned=[A], ms=3_000)])
    assert (dict(counters.unread.buckets())["+Inf"], counters.unread.sum) == (1, 2.0)


def test_ends_of_consumers():
    counters = GroupCounters()
    counters.take([report("old", 1, Phase.ENDED, ending=Ending.FAILED)])
    counters.take([report("read", 1), report("read", 2, Phase.ENDED, ending=Ending.FAILED)])
    counters.take([report("never", 1, Phase.ENDED, ending=Ending.FAILED)])
    counters.take([report("never", 1, Phase.ENDED, ending=Ending.FAILED), report("old", 2, Phase.ENDED)])
    assert values(counters) == {
        ("kgs_consumers_ended_total", "failed"): 2,
        ("kgs_consumer_start_failures_total",): 1,
    }


def test_work_is_counted_once_over_incarnations_and_old_reports():
    """A second incarnation begins at zero; what is read again, and a process that says nothing, adds nothing."""
    counters = GroupCounters()
    first = [report("a", n, work=WorkDone(n, n / 2, 1, n * 100, n / 4, n * 1.0, 5)) for n in (1, 2, 3)]
    counters.take(first[:1])
    assert values(counters) == {}
    counters.take([*first[1:], report("b", 1, work=WorkDone(10, 1.0)), report("c", 1)])
    again = values(counters)
    assert again == {
        ("kgs_commits_total",): 12,
        ("kgs_commit_seconds_total",): 2.0,
        ("kgs_consumer_cpu_seconds_total",): 2.0,
        ("kgs_consumer_full_bytes_total", "1"): 200,
        ("kgs_consumer_full_seconds_total", "1"): 0.5,
    }
    counters.take([*first, *first])
    assert values(counters) == again


def test_batches_that_did_not_land_are_told_apart_where_the_consumer_says_why():
    """And the last word of a version that did not say is no base that "ahead" is counted from."""
    counters = GroupCounters()
    counters.take([report("a", 1, work=WorkDone(refused=2, outrun=1)), report("old", 1, work=WorkDone(refused=4))])
    counters.take([report("a", 2, work=WorkDone(refused=7, outrun=3)), report("old", 2, work=WorkDone(refused=5))])
    assert values(counters) == {
        ("kgs_commits_refused_total", "ahead"): 2,
        ("kgs_commits_refused_total", "error"): 3,
        ("kgs_commits_refused_total", "other"): 1,
    }


def test_time_of_a_consumer_that_commits_nothing_is_counted_once():
    """A spare's; after each new connection all of its reports are read again."""
    counters = GroupCounters()
    counters.take([])
    every = [report("a", n, work=WorkDone(cpu_s=float(n))) for n in (1, 2, 3)]
    for _ in range(3):
        counters.take(every)
    assert values(counters) == {("kgs_consumer_cpu_seconds_total",): 3.0}


def test_work_counts_on_where_the_processor_time_falls():
    """Children that ended take theirs along where nobody waits for them."""
    counters = GroupCounters()
    counters.take([])
    counters.take([report("a", n, work=WorkDone(n, cpu_s=10.0 - n)) for n in (1, 2, 3)])
    assert values(counters)[("kgs_commits_total",)] == 3


def test_changes_count_on_when_the_topic_was_made_again():
    counters = GroupCounters()
    counters.take([target(500, FIRST)])
    counters.connected()
    counters.take([target(1, replace(SECOND, time_ms=9))])
    assert sum(values(counters)[("kgs_changes_total", *labels)] for labels in [("timeout", "false")]) == 1


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_label_of_its_own(reason):
    text = str(ExitCondition(reason, (ConsumerId(1),)))
    assert reason_label(f"{text}; something else") == reason.name.lower()
    assert is_forced(text) is (reason is not Reason.TIMEOUT)
    assert is_forced(f"{BETTER}; {Reason.LOST}: 2")


def test_other_reasons():
    assert reason_label("2 takes over what 1 was to read: nobody read it") == "other"
    assert is_forced("the first assignment")
    assert not is_forced(BETTER)


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
