"""When a group may sleep, beside a plain loop over all reports; and what wakes it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgs_core.group.controller.idleness import due_sleep, waking_reason
from kgs_core.group.controller.state import ChangeProgress, ControllerState, Listening
from kgs_core.group.protocol import Idle, Incarnation, Member, Phase, Process, Received, Report, Target
from kgs_core.group.view.group_view import GroupView
from kgs_core.group.view.transitions import State
from kgs_core.model import ConsumerId, TopicId, TopicPartition
from kgs_core.planning.load import Load
from tests.core.group.controller.watched_group import WatchedGroup
from tests.sim_group import options

A, B, C = (TopicPartition(topic, number) for topic, number in (("t", 0), ("t", 1), ("u", 0)))
SHARES = {1: (A,), 2: (B, C)}
ENDS = {A: 2, B: 2, C: 0}
IDS = {"t": TopicId("1"), "u": TopicId("2")}
AFTER_S, NOW, SUSPECT_S = 60.0, 200.0, 30.0
QUIET = Load(dict.fromkeys(ENDS, 0.0), ends=ENDS, topic_ids=IDS)
TARGET = Target("mwf", {A: 1, B: 2, C: 2}, (), dict.fromkeys(ENDS, 0.0), 100.0, 0.0, "", (), (), 0)
ASLEEP = replace(TARGET, assignment={}, speeds={}, idle=Idle(0, ENDS, IDS))

rarely = st.sampled_from([False] * 4 + [True])
unread = st.sampled_from([{}, {A: 1, B: 2, C: 0}, {A: 2, B: 1, C: 0}])
positions = rarely.flatmap(lambda is_unread: unread if is_unread else st.just(ENDS))
earlier = st.lists(st.tuples(st.integers(0, 150), positions, st.booleans()), max_size=3)
newest = st.tuples(st.sampled_from([150, 190, 190, 200]), positions, rarely)
reports = st.builds(lambda some, last: [*sorted(some, key=lambda one: one[0]), last], earlier, newest)
loads = st.sampled_from(
    [
        *[QUIET] * 4,
        replace(QUIET, speeds={**QUIET.speeds, A: 0.1}),
        replace(QUIET, unknown=frozenset({A})),
        replace(QUIET, speeds={B: 0.0, C: 0.0}, unknown=frozenset({A})),
        replace(QUIET, ends={A: 2, B: 2}),
        replace(QUIET, ends={**ENDS, B: 3}),
    ]
)


def a_state(load=QUIET, target=TARGET, view=None, packed_at=0.0, now=NOW):
    found = view or GroupView().take(Received(target, 0, 0), 0.0)
    return ControllerState(
        options({"idle_after_s": AFTER_S}, suspect_after_s=SUSPECT_S),
        0.0,
        name=State.SENTINEL,
        view=found,
        listening=Listening(now),
        measured=None if load is None else replace(load, read_at=now),
        change=ChangeProgress(packed_at),
    )


def said(consumer, sequence, read, is_stopped):
    share = SHARES[consumer]
    return Report(
        Member(ConsumerId(consumer), Incarnation(f"i{consumer}")),
        sequence,
        Phase.READING,
        0.0,
        None,
        Process({"pid": consumer}),
        0,
        frozenset(share),
        {share[0]: "why"} if is_stopped else {},
        {p: read[p] for p in share if p in read},
    )


def plainly_since(consumer, history):
    """When the reports began that say to the last one that all of its share is read; None: the last one does not."""
    since = None
    for at, read, _ in history:
        if any(read.get(p) != ENDS[p] for p in SHARES[consumer]):
            since = None
        elif since is None:
            since = at
    heard_at, _, is_stopped = history[-1]
    return None if is_stopped or NOW - heard_at > SUSPECT_S else since


@settings(max_examples=600)
@given(of_one=reports, of_two=reports, load=loads, packed_at=st.sampled_from([0, 100, 139, 140, 141]))
def test_a_group_may_sleep_once_reports_of_all_have_said_for_long_enough_that_all_is_read(
    of_one, of_two, load, packed_at
):
    histories = {1: of_one, 2: of_two}
    view = GroupView().take(Received(TARGET, 0, 0), 0.0)
    told = sorted((at, consumer, n, *rest) for consumer, one in histories.items() for n, (at, *rest) in enumerate(one))
    for offset, (at, consumer, sequence, read, is_stopped) in enumerate(told):
        view = view.take(Received(said(consumer, sequence, read, is_stopped), offset, at * 1000), float(at))
    sinces = [plainly_since(consumer, history) for consumer, history in histories.items()]
    is_read = load == QUIET and None not in sinces and NOW - max([*sinces, packed_at]) >= AFTER_S
    found = due_sleep(a_state(load, view=view, packed_at=float(packed_at)), NOW)
    assert found == (Idle(max(sinces) * 1000, ENDS, IDS) if is_read else None)


def test_nothing_wakes_a_group_while_nothing_differs_from_its_proof():
    assert waking_reason(a_state(target=ASLEEP), NOW) == ""
    assert waking_reason(a_state(replace(QUIET, unknown=frozenset(ENDS), speeds={}), ASLEEP), NOW) == "", "no speed yet"
    gone = replace(QUIET, ends={A: 2, B: 2}, speeds={A: 0.0, B: 0.0}, topic_ids={"t": TopicId("1")})
    assert waking_reason(a_state(gone, ASLEEP), NOW) == "", "a topic was deleted"
    assert waking_reason(a_state(replace(QUIET, ends={**ENDS, A: 9})), NOW) == "", "it is awake"


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (replace(QUIET, ends={**ENDS, A: 3}), "records to read: t:0"),
        (replace(QUIET, ends={**ENDS, A: 1}), "records to read: t:0"),
        (replace(QUIET, ends={**ENDS, TopicPartition("t", 2): 0}), "records to read: t:2"),
        (replace(QUIET, topic_ids={**IDS, "u": TopicId("3")}), "other topics: u:0"),
        (replace(QUIET, ends={A: 2, B: 2}, unknown=frozenset({C})), "ends of logs not known: u:0"),
        (None, "the ends of the logs are not known"),
    ],
)
def test_whatever_differs_wakes_it(load, why):
    assert waking_reason(a_state(load, ASLEEP), NOW) == why


def test_a_monitor_that_has_just_begun_is_waited_for():
    assert waking_reason(a_state(None, ASLEEP, now=SUSPECT_S), SUSPECT_S) == ""


def test_a_group_that_observers_look_after_sleeps_by_one_run_and_wakes_by_another():
    group = WatchedGroup.of(options({"spare_consumers": 0, "idle_after_s": 60}), a=50, b=50, c=50)
    group.settle()
    group.rounds(100)
    assert group.readers() == [1, 2]
    group.speeds(a=0, b=0, c=0)
    group.until(lambda: not group.world.fleet.living(), 150)
    group.rounds(100)
    assert [reason for _, reason in group.asked[1:]] == ["idle: everything is read"]
    group.world.topics.write(TopicPartition("b", 0))
    group.until(lambda: not group.world.unread(), 20)
    assert group.asked[-1][1] == "records to read: b:0"
