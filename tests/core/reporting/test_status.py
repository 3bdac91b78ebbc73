"""What people are shown of the group, from what its topics say."""

from dataclasses import replace

import pytest

from kgs_core.group.protocol import (
    Change,
    DesiredState,
    DesiredVersion,
    Ending,
    Incarnation,
    Member,
    MemberAssignment,
    Phase,
    Received,
    Report,
    RunState,
    Target,
)
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.load import Load
from kgs_core.reporting.consumer_rows import ConsumerRow, ExternalFacts
from kgs_core.reporting.status import group_status
from tests.configuration import settings_of
from tests.processes import a_process

A, B, C = (TopicPartition("t", n) for n in range(3))
D = TopicPartition("u", 0)
ONE = Member(ConsumerId(1), Incarnation("one-uuid"))
TWO = Member(ConsumerId(2), Incarnation("two-uuid"))
TWIN = Member(ConsumerId(2), Incarnation("twin-uuid"))
PROCESS = a_process()
CHANGE = Change(1_000, "first", 0, 0.0, 2, 3.0)
TARGET = Target("mwf", {A: ConsumerId(1), B: ConsumerId(1), C: ConsumerId(2)}, (), {}, 100.0, 0.5, "why", (), (), 5)
NOW = 1000.0
CAPACITIES = {"packing_capacity_bytes_per_s": 100, "consumer_capacity_bytes_per_s": 150}


def report(member, *owned, sequence=1, applied=0, **more):
    return Report(member, sequence, Phase.READING, 7.0, None, PROCESS, applied, frozenset(owned), **more)


def group(*messages, target=TARGET, since_ms=0):
    """A view of the target, then of assignments for what is reported, then of the messages; the last has just come."""
    records = [Received(target, 0, since_ms)] if target else []
    for offset, message in enumerate(messages):
        if isinstance(message, Report):
            records.append(Received(MemberAssignment(message.member, owned=message.owned), 0, since_ms))
        records.append(Received(message, offset, since_ms))
    return GroupView().take_all(records, NOW)


def seen(view, now=NOW, time_ms=0, packing=None, **facts):
    settings = settings_of(packing={**CAPACITIES, **(packing or {})})
    return group_status(settings, view, ExternalFacts(**facts), now, time_ms)


DRAINING = replace(report(ONE, A), phase=Phase.DRAINING, last_drain_s=0.5, max_drain_s=2.0)
OVER = replace(report(TWO), phase=Phase.ENDED)
SPARE = report(Member(ConsumerId(3), Incarnation("three")))
WITH_SPARE = replace(TARGET, spares=(ConsumerId(3),))


def test_a_group_where_everything_is_in_its_place():
    found = seen(
        group(report(ONE, A, B), report(TWO, C)),
        load=Load({A: 10.0, B: 20.0, C: 5.0}, age_s=1.0),
        lags={A: 1, B: 0, C: 4},
    )
    assert found.is_converged
    assert found.controller_is_heard
    assert found.current == TARGET.assignment
    assert (found.waiting, found.lag) == ({}, 5)
    assert found.consumers[0] == ConsumerRow(
        consumer=1,
        incarnation="one-uuid",
        state="reading",
        partitions=(A, B),
        load=30.0,
        bytes_per_s=7.0,
        lag=1,
        known_lag=1,
        report_age_s=0.0,
        process=PROCESS,
        batch_age_s=0.0,
    )


def test_unknown_is_not_zero():
    """Of B neither speed nor lag is known, so neither is that of who reads it, nor the group's lag."""
    found = seen(group(report(ONE, A, B), report(TWO, C)), load=Load({A: 10.0, C: 5.0}), lags={A: 1, B: None, C: 2})
    assert [(line.load, line.lag) for line in found.consumers] == [(None, None), (5.0, 2)]
    assert [(line.known_lag, line.lag_unknown_partitions) for line in found.consumers] == [(1, 1), (2, 0)]
    assert (found.lag, found.known_lag, found.lag_unknown_partitions) == (None, 3, 1)
    nothing = seen(group(report(ONE, A, B)), lags={})
    assert (nothing.lag, nothing.known_lag, nothing.lag_unknown_partitions) == (None, None, 2)
    partly = seen(group(report(ONE, A, B)), lags={A: 0})
    assert (partly.lag, partly.known_lag, partly.lag_unknown_partitions) == (None, 0, 1), "Kafka says nothing of B"
    assert seen(group()).lag is None


def test_a_controller_that_publishes_nothing_of_late_is_down():
    assert seen(group(), load=Load({}, age_s=10.0)).controller_is_heard
    assert not seen(group(), load=Load({}, age_s=10.1)).controller_is_heard
    assert not seen(group()).controller_is_heard


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        (seen(group(report(ONE, A, B, C))), ["1 reading", "2 not there !"]),
        (seen(group(report(ONE, A, B), report(TWO, C)), now=NOW + 31), ["1 silent !", "2 silent !"]),
        (
            seen(group(report(ONE, A, B), report(TWO, C), report(TWIN))),
            ["1 reading", "2 reads nothing", "2 replaced by a newer process"],
        ),
        (seen(group(DRAINING, OVER, SPARE, target=WITH_SPARE)), ["1 draining", "2 not there !", "3 spare"]),
    ],
    ids=["one is missing", "silent", "the newer incarnation first", "spares, drains and ends"],
)
def test_what_every_consumer_does(found, rows):
    assert [f"{row.consumer} {row.state}{' !' * row.needs_attention}" for row in found.consumers] == rows


def test_what_a_row_has_of_its_last_report():
    assert [row.report_age_s for row in seen(group(report(ONE, A, B), report(TWO, C)), now=NOW + 31).consumers] == [
        31.0
    ] * 2
    draining = seen(group(DRAINING)).consumers[0]
    assert (draining.last_drain_s, draining.max_drain_s) == (0.5, 2.0)


PAUSED, STOPPED = (DesiredState(state, "me", 1) for state in (RunState.PAUSED, RunState.STOPPED))


@pytest.mark.parametrize(
    ("found", "is_converged", "waiting"),
    [
        (seen(group(report(ONE, A, B, C))), False, {C: "it has not joined"}),
        (seen(group(report(ONE, A), report(TWO), PAUSED)), False, {A: "consumer 1 is to let it go"}),
        (seen(group(report(ONE), report(TWO), PAUSED)), True, {}),
        (seen(group(report(ONE), PAUSED)), True, {}),
        (seen(group(report(ONE), report(TWO), STOPPED)), False, {}),
        (seen(group(replace(report(ONE), phase=Phase.ENDED), OVER, STOPPED)), True, {}),
        (seen(group(PAUSED, target=None)), True, {}),
    ],
    ids=[
        "one has not joined",
        "somebody reads during a pause",
        "a pause is reached when nobody reads",
        "nobody is started meanwhile",
        "who reads nothing has not ended",
        "a stop is reached when all have ended",
        "before the first target",
    ],
)
def test_what_a_change_waits_for(found, is_converged, waiting):
    assert (found.is_converged, found.waiting) == (is_converged, waiting)


def test_a_consumer_that_was_stopped_needs_no_attention():
    found = seen(group(replace(report(ONE), phase=Phase.ENDED), OVER, STOPPED))
    assert [(line.state, line.needs_attention) for line in found.consumers] == [("ended", False)] * 2


def test_who_has_another_version_or_configuration_is_outdated_and_what_its_replacement_waits_for():
    wanted = DesiredVersion("2", "abc", "me", 1)
    messages = (report(ONE, A, B, version="2", config_hash="abc"), report(TWO, C, version="1", config_hash="abc"))
    assert seen(group(*messages, wanted)).outdated == (2,)
    assert "a spare to be started" in str(seen(group(*messages, wanted)).replacement)
    assert (seen(group(*messages)).outdated, seen(group(*messages)).replacement) == ((), None)


def test_before_the_first_target():
    found = seen(group(target=None))
    assert (found.target, found.current, found.consumers, found.changes) == (None, {}, (), ())
    assert not found.is_converged


def test_what_stands_still_and_the_last_changes():
    found = seen(group(report(ONE, A, B, stopped={A: "poison"}), target=replace(TARGET, history=(CHANGE,))))
    assert found.consumers[0].stopped == {A: "poison"}
    assert found.consumers[0].needs_attention
    assert found.changes == (CHANGE,)


def test_what_another_reads_by_now_does_not_stand_still_whatever_its_last_reader_says():
    both = group(report(ONE, A, B, stopped={A: "poison", B: "poison"}), report(TWO, C))
    took = Received(MemberAssignment(TWO, owned=frozenset({A, C})), 9, 0)
    lost = Received(MemberAssignment(ONE, owned=frozenset({B})), 9, 0)
    found = seen(both.take_all([took, lost, Received(report(TWO, A, C, sequence=2), 9, 0)], NOW))
    assert (found.current[A], found.stopped, found.topics_consumed) == (2, {B: "poison"}, 1)


def test_people_are_shown_ten_changes_though_a_target_may_remember_more():
    many = tuple(replace(CHANGE, time_ms=n) for n in range(14))
    assert seen(group(target=replace(TARGET, history=many))).changes == many[-10:]


def test_a_topic_is_as_bad_as_its_worst_reader_says():
    one, two = report(ONE, A, D, bad_shares={"t": 0.6, "u": 0.7}), report(TWO, B, bad_shares={"t": 0.9})
    assert seen(group(one, two, report(TWIN, C))).bad_shares == {"t": 0.9, "u": 0.7}


def test_who_has_ended_or_is_silent_says_nothing_of_topics_that_others_read():
    bad = report(ONE, A, bad_shares={"t": 1.0})
    ended = replace(bad, sequence=2, phase=Phase.ENDED, owned=frozenset())
    assert seen(group(bad, ended)).bad_shares == {}
    assert seen(group(bad)).bad_shares == {"t": 1.0}
    assert seen(group(bad), now=NOW + 31).bad_shares == {}


def test_why_a_consumer_ended_by_an_error_is_shown_until_it_is_there_again():
    last = replace(report(ONE, sequence=2), phase=Phase.ENDED, ending=Ending.FAILED, why="5 rounds failed")
    ended = group(report(ONE, A, B), report(TWO, C), last)
    assert seen(ended).failures == {1: "5 rounds failed"}
    assert seen(ended.bury([ONE.incarnation])).failures == {1: "5 rounds failed"}, "also when its death is confirmed"
    back = ended.take(Received(report(Member(ConsumerId(1), Incarnation("back"))), 9, 0), NOW)
    assert seen(back).failures == {}
    retired = replace(report(Member(ConsumerId(1), Incarnation("back")), sequence=2), phase=Phase.ENDED)
    assert seen(back.take(Received(retired, 10, 0), NOW)).failures == {}, (
        "its number is not needed any more, that is all"
    )
