"""Load of a plain group: what members read by their commits, and who of them is flat out; a loop over time as judge."""

import math
from random import Random

import pytest

from kgs_core.config.packing import PackingSettings
from kgs_core.model import TopicPartition
from kgs_core.planning.group_load import FLAT_OUT_S, LEAST_SPAN_S, Progress, group_load
from kgs_core.planning.load import Load
from kgs_core.planning.plan import Group, make_plan
from kgs_core.reporting.group_load import group_sentences, group_values

TICK_S = 0.1
COMMIT_S = 5.0
BYTES = 100.0


def watched(writes, can_read, backlog, phase_s, span_s):
    """A member's commits as they are seen, and whether it had something to read all the time; offsets per second."""
    end, position, committed = float(backlog), 0.0, 0.0
    seen, always_busy = [], True
    for tick in range(round((COMMIT_S + span_s) / TICK_S) + 1):
        at = tick * TICK_S
        if tick in (round(COMMIT_S / TICK_S), round((COMMIT_S + span_s) / TICK_S)):
            seen.append((math.floor(committed), math.floor(end)))
        if tick % round(COMMIT_S / TICK_S) == round(phase_s / TICK_S):
            committed = position
        end += writes * TICK_S
        position = min(end, position + can_read * TICK_S)
        always_busy = always_busy and (at < COMMIT_S or position < end)
    return seen, always_busy


@pytest.mark.parametrize("seed", range(300))
def test_only_who_is_behind_all_the_time_shows_what_a_member_can_read(seed):
    draw = Random(seed)
    writes, can_read = draw.choice([10, 100, 1000]) * draw.uniform(0.5, 2), draw.choice([10, 100, 1000])
    backlog = draw.choice([0, 0, 5, 40, 400]) * can_read
    tp, phase_s, span_s = TopicPartition("t", 0), draw.uniform(0, COMMIT_S - TICK_S), draw.choice([15.0, 30.0, 60.0])
    (first, last), always_busy = watched(writes, can_read, backlog, phase_s, span_s)
    progress = Progress({tp: first[0]}, {tp: last[0]}, span_s, {tp: last[1]}, {tp: BYTES})
    found = group_load("g", [("a", frozenset([tp]))], progress, {tp: writes * BYTES})
    (member,) = found.members
    assert abs(member.read_bytes_per_s - (last[0] - first[0]) * BYTES / span_s) < 1e-6
    if member.is_flat_out:
        assert always_busy
        assert abs(member.read_bytes_per_s / (can_read * BYTES) - 1) <= COMMIT_S / span_s + 0.02
        assert found.flat_out_bytes_per_s == member.read_bytes_per_s
    else:
        assert found.flat_out_bytes_per_s is None
        least = min(first[1] - first[0], last[1] - last[0])
        assert not least > (FLAT_OUT_S + 2) * member.read_bytes_per_s / BYTES > 0, "it would have told"


@pytest.mark.parametrize("lacks", ["before", "after", "ends", "bytes", "speed", "span", "set back"])
def test_what_is_not_known_is_not_zero(lacks):
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    offsets = {a: 100, b: 100}
    without = {a: 100}
    progress = Progress(
        without if lacks == "before" else dict.fromkeys(offsets, 500) if lacks == "set back" else {a: 50, b: 50},
        without if lacks == "after" else offsets,
        LEAST_SPAN_S / 2 if lacks == "span" else 30.0,
        without if lacks == "ends" else {a: 200, b: 200},
        {a: BYTES} if lacks == "bytes" else {a: BYTES, b: BYTES},
    )
    speeds = {a: 10.0} if lacks == "speed" else {a: 10.0, b: 10.0}
    (member,) = group_load("g", [("m", frozenset([a, b]))], progress, speeds).members
    unknown = {
        name for name in ("read_bytes_per_s", "behind_bytes", "written_bytes_per_s") if getattr(member, name) is None
    }
    assert (
        unknown
        == {
            "before": {"read_bytes_per_s"},
            "after": {"read_bytes_per_s", "behind_bytes"},
            "ends": {"behind_bytes"},
            "bytes": {"read_bytes_per_s", "behind_bytes"},
            "speed": {"written_bytes_per_s"},
            "span": {"read_bytes_per_s"},
            "set back": {"read_bytes_per_s"},
        }[lacks]
    )
    assert not member.is_flat_out


def test_what_is_wrong_with_a_group_is_said():
    tps = [TopicPartition("t", number) for number in range(5)]
    speeds = dict(zip(tps, (90.0, 60.0, 10.0, 5.0, 5.0), strict=True))
    known = dict.fromkeys(tps[:3], 10)
    progress = Progress(known, known, 30.0, dict.fromkeys(tps, 10), dict.fromkeys(tps, 1.0))
    members = [
        ("a", frozenset(tps[:2])),
        ("b\n\x1b[1m", frozenset([tps[2]])),
        ("c", frozenset([tps[3]])),
        ("d", frozenset()),
    ]
    found = group_load("g", members, progress, speeds)
    assert (found.idle, found.unread) == ({4}, (tps[4],))
    packing = PackingSettings(packing_capacity_bytes_per_s=100, algorithm="mwf", spare_consumers=0)
    plan = make_plan(Load(speeds), Group(found.current, spares=found.idle), packing, lambda: Random(1))
    assert plan.consumers == 2
    assert list(group_sentences(found, plan, "configured")) == [
        "4 members where 2 would do: 2 too many",
        "above the packing capacity: a",
        "without a partition: d",
        "without a member: t:4",
        "not known how far behind (no committed offset, or no size): c",
    ]
    assert any("give --capacity" in one for one in group_sentences(found, plan, "first"))
    values = group_values(found, plan, "learnt")
    assert [one["behind_bytes"] for one in values["members"]] == [0, 0, None, 0]
    assert values["without_member"] == ["t:4"]


def test_a_balanced_group_is_told_so():
    tps = [TopicPartition("t", number) for number in range(2)]
    speeds = dict.fromkeys(tps, 60.0)
    at = dict.fromkeys(tps, 10)
    members = [("a", frozenset(tps[:1])), ("b", frozenset(tps[1:]))]
    found = group_load("g", members, Progress(at, at, 30.0, at, dict.fromkeys(tps, 1.0)), speeds)
    packing = PackingSettings(packing_capacity_bytes_per_s=100, spare_consumers=0)
    plan = make_plan(Load(speeds), Group(found.current), packing, lambda: Random(1))
    assert list(group_sentences(found, plan, "configured")) == ["balanced: nothing to move"]
