"""What is told of the group, and counted, while it is looked at again and again."""

from dataclasses import replace

from kgs_core.demo.observer import DemoHistory, short_name
from kgs_core.fleet.host_process import HostProcess
from kgs_core.fleet.pod_process import PodProcess
from kgs_core.group.protocol import Change, Incarnation, Target
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.consumer_rows import ConsumerRow
from tests.a_status import a_status
from tests.processes import a_process

FIRST = Change(1_000, "partition without owner", 0, 0.0, 1)
GROWN = Change(20_000, "consumer above consumer_capacity: 1", 11, 0.4, 2)
SHRUNK = Change(90_000, "looking for a better packing", 5, 0.1, 1)


def line(consumer, incarnation, pid):
    return ConsumerRow(
        ConsumerId(consumer), Incarnation(incarnation), "reading", process=HostProcess("h", "b", pid, 1).as_process()
    )


def group(*lines, readers=(), changes=()):
    current = {TopicPartition("t", n): ConsumerId(c) for n, c in enumerate(readers)}
    target = Target("mwf", {}, (), {}, 1.0, 0.0, "", (), (), 0, history=tuple(changes))
    return a_status(target=target, current=current, is_converged=True, consumers=lines)


def test_consumers_come_and_go():
    history = DemoHistory()
    absent = ConsumerRow(ConsumerId(2), None, "not there")
    assert history.note(group(line(1, "a", 10), absent), 0) == ("consumer 1 (pid 10) has joined",)
    assert history.note(group(line(1, "a", 10), line(2, "b", 11)), 1) == ("consumer 2 (pid 11) has joined",)
    assert history.note(group(line(1, "a", 10), line(2, "b", 11)), 2) == ()
    assert history.note(group(line(1, "c", 12), line(2, "b", 11)), 3) == (
        "consumer 1 (pid 10) has left",
        "consumer 1 (pid 12) has joined",
    )


def test_each_change_is_reported_once():
    history = DemoHistory()
    assert history.note(group(changes=[FIRST]), 0) == ("target: 1 consumer, nothing moves: partition without owner",)
    assert history.note(group(changes=[replace(FIRST, duration_s=3.0), GROWN]), 1) == (
        "target: 2 consumers, 11 partitions move, Rscore 0.40: consumer above consumer_capacity: 1",
    )
    assert history.note(group(changes=[FIRST, GROWN]), 2) == ()


def test_long_reasons_are_cut_each_for_itself():
    reason = "partition without owner: flights.ewr:0, flights.ewr:1, 3 more; consumer lost: 1"
    assert DemoHistory().note(group(changes=[replace(FIRST, reason=reason)]), 0) == (
        "target: 1 consumer, nothing moves: partition without owner: flights.ewr:0, ...; consumer lost: 1",
    )


def test_changes_count_that_the_target_does_not_tell_of_any_more():
    history = DemoHistory()
    history.note(group(changes=[FIRST, GROWN]), 0)
    history.note(group(changes=[SHRUNK]), 1)
    figures = history.figures
    assert (figures.rebalances, figures.moved, round(figures.rscore, 6)) == (2, 16, 0.5)


def test_consumers_are_counted_from_the_first_that_reads():
    history = DemoHistory()
    assert history.figures.mean_consumers is None
    history.note(group(), 0)
    history.note(group(readers=[1]), 10)
    assert history.figures.mean_consumers is None
    history.note(group(readers=[1, 1, 2, 3]), 20)
    history.note(group(readers=[1]), 40)
    figures = history.figures
    assert figures.mean_consumers == (10 * 1 + 20 * 3) / 30
    assert figures.max_consumers == 3


def test_a_process_of_each_kind_is_named_as_people_look_for_it():
    assert short_name(HostProcess("h", "b", 4711, 1).as_process()) == ("pid", "4711")
    assert short_name(PodProcess("dagster-run-1a2b-x7k2p", "kgs", "u-1", "c").as_process()) == ("pod", "x7k2p")
    assert short_name(a_process()) == ("", "?")
