"""Load of a plain group: what members read by their commits, and who of them is flat out; a loop over time as judge."""

from random import Random

import pytest

from kgs_core.config.packing import PackingSettings
from kgs_core.model import TopicPartition
from kgs_core.planning.group import Group
from kgs_core.planning.group_load import Look, group_load
from kgs_core.planning.load import Load
from kgs_core.planning.plan import make_plan
from kgs_core.reporting.group_load import group_sentences, group_values

TICK_S = 0.1
LOOK_S = 2.0
WARM_S = 120.0
BYTES = 100.0
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def watched(draw, commit_s, span_s):
    """Looks at one member that reads A and B; whether it had something to read all the time, and what it has read."""
    can_read = draw.choice([10, 100, 1000])
    writes = can_read * draw.choice([0.0, 0.05, 0.5, 0.9, 1.5, 3.0])
    burst_at = draw.uniform(WARM_S, WARM_S + span_s) if draw.random() < 0.3 else 1e9
    ends, at, done = {A: 0.0, B: 0.0}, {A: 0.0, B: 0.0}, {A: 0, B: 0}
    ends[A] = draw.choice([0, 0, 5, 40, 400]) * can_read + (WARM_S * can_read if writes < can_read else 0)
    phase_s, looks, busy, read_since = draw.uniform(0, commit_s), [], True, None
    for tick in range(round((WARM_S + span_s) / TICK_S) + 1):
        now = tick * TICK_S
        if now % commit_s < TICK_S and now >= phase_s:
            done = {tp: int(offset) for tp, offset in at.items()}
        if now >= WARM_S and (now - WARM_S) % LOOK_S < TICK_S:
            logs = {tp: (0, int(end)) for tp, end in ends.items()}
            looks.append(Look(now, {A: "m", B: "m"}, done, logs))
        if now >= WARM_S:
            busy = busy and sum(ends.values()) - sum(at.values()) > can_read * TICK_S
            read_since = sum(at.values()) if read_since is None else read_since
        ends[B] += writes * TICK_S * (8 if burst_at <= now < burst_at + 8 else 1)
        left = can_read * TICK_S
        for tp in (A, B):
            step = min(left, ends[tp] - at[tp])
            at[tp], left = at[tp] + step, left - step
    return looks, busy, can_read, (sum(at.values()) - read_since) / span_s, writes


@pytest.mark.parametrize("seed", range(400))
def test_only_who_is_behind_all_the_time_shows_what_a_member_can_read(seed):
    draw = Random(seed)
    commit_s, span_s = draw.choice([1.0, 5.0, 20.0, 30.0, 60.0]), draw.choice([15.0, 30.0, 60.0])
    looks, busy, can_read, truth, writes = watched(draw, commit_s, span_s)
    found = group_load("g", [("m", "a")], looks, {A: BYTES, B: BYTES}, {A: 0.0, B: writes * BYTES})
    (member,) = found.members
    if member.is_flat_out:
        assert busy
        assert abs(member.read_bytes_per_s / (can_read * BYTES) - 1) <= 0.25, "a look is 2 s off at most at either end"
    if member.read_bytes_per_s == 0.0:
        assert (truth, member.behind_bytes) == (0, 0)
    assert (found.flat_out_bytes_per_s is None) == (not member.is_flat_out)
    if commit_s >= span_s:
        assert not member.read_bytes_per_s, "two commits at most are no speed"
    if busy and commit_s <= 5 and span_s >= 30 and min(sum(map(look.behind, (A, B))) for look in looks) > 30 * can_read:
        assert member.is_flat_out, "it would have told"


def looks_of(**changed):
    """Three looks at a member that keeps up with A and B, but for what is changed at the last."""
    found = []
    for n in range(4):
        last = changed if n == 3 else {}
        logs = dict.fromkeys((A, B), (0, 100 + 10 * n)) | last.get("logs", {})
        committed = dict.fromkeys((A, B), 100 + 10 * n) | last.get("committed", {})
        owners = {A: "m", B: "m"} | last.get("owners", {})
        drop = last.get("drop", ())
        found.append(Look(10.0 * n, owners, {tp: at for tp, at in committed.items() if tp not in drop}, logs))
    return found


@pytest.mark.parametrize(
    ("changed", "known", "unknown"),
    [
        ({}, {}, set()),
        ({"drop": (B,)}, {}, {"read", "behind"}),
        ({"committed": {B: 500}}, {}, {"read", "behind"}),
        ({"committed": {B: 20}}, {}, {"read"}),
        ({"owners": {B: "other"}}, {}, {"read"}),
        ({}, {"speeds": {A: 10.0}}, {"written"}),
        ({}, {"sizes": {A: BYTES}}, {"read"}),
        ({"drop": (B,), "logs": {B: (130, 130)}}, {}, set()),
    ],
    ids=["all", "no offset", "another log's offset", "set back", "moved", "no speed", "no size", "empty"],
)
def test_what_is_not_known_is_not_zero(changed, known, unknown):
    sizes, speeds = known.get("sizes", {A: BYTES, B: BYTES}), known.get("speeds", {A: 10.0, B: 10.0})
    member = group_load("g", [("m", "x"), ("other", "y")], looks_of(**changed), sizes, speeds).members[0]
    figures = {
        name: getattr(member, f"{name}_bytes{'' if name == 'behind' else '_per_s'}")
        for name in ("written", "read", "behind")
    }
    assert {name for name, figure in figures.items() if figure is None} == unknown
    assert not member.is_flat_out


def plan_for(found, speeds, **packing):
    settings = PackingSettings(
        **{"packing_capacity_bytes_per_s": 100, "algorithm": "mwf", "spare_consumers": 0, **packing}
    )
    return make_plan(Load(speeds), Group(found.current, spares=found.idle), settings, lambda: Random(1))


def test_what_is_wrong_with_a_group_is_said():
    tps = [TopicPartition("t", number) for number in range(6)]
    speeds = dict(zip(tps, (90.0, 60.0, 10.0, 5.0, 5.0, 5.0), strict=True))
    owners = {tps[0]: "a", tps[1]: "a", tps[2]: "b", tps[3]: "c"}
    names = [("a", "a"), ("b", "b\n\x1b[1m"), ("c", "c"), ("d", "d" * 99), ("e", "e")]
    looks = [
        Look(10.0 * n, owners, {tps[0]: 10, tps[1]: 10, tps[2]: 5, tps[5]: 5 + n}, dict.fromkeys(tps, (0, 10)))
        for n in range(4)
    ]
    found = group_load("g", names, looks, dict.fromkeys(tps, 1.0), speeds)
    plan = plan_for(found, speeds)
    told = list(group_sentences(found, plan, "configured"))
    assert told == [
        "5 members where 2 would do, at 0.0001 MB/s: 3 too many",
        "above the packing capacity: a",
        "behind, and has committed nothing meanwhile: b \\x1b[1m",
        f"without a partition: {'d' * 59}…, e",
        "without a member: t:4",
        "without a member, and read all the same (a consumer that assigns itself): t:5",
        "not known how far behind (no committed offset, or none that the log has): c",
    ]
    assert any("--capacity" in one for one in group_sentences(found, plan, "first"))
    values = group_values(found, plan, "learnt")
    assert [one["behind_bytes"] for one in values["members"]] == [0, 5, None, 0, 0]
    assert (values["without_member"], values["behind_bytes"]["t:5"]) == (["t:4", "t:5"], 2)


@pytest.mark.parametrize(
    ("speeds", "first"),
    [
        ({A: 60.0, B: 60.0}, "balanced, at 0.0001 MB/s a member: nothing to move"),
        ({A: 60.0}, "how many members are needed is not known: no speed yet of t:1"),
        ({A: 20.0, B: 20.0}, "2 members where 1 would do, at 0.0001 MB/s: 1 too many"),
        (
            {A: 260.0, B: 60.0},
            "faster than a member, which only more partitions of the topic or a greater capacity cure: t:0",
        ),
    ],
)
def test_how_many_are_needed_is_said_only_where_it_is_known(speeds, first):
    looks = [Look(10.0 * n, {A: "a", B: "b"}, {A: 10, B: 10}, {A: (0, 10), B: (0, 10)}) for n in range(4)]
    found = group_load("g", [("a", "a"), ("b", "b")], looks, {A: 1.0, B: 1.0}, speeds)
    assert next(group_sentences(found, plan_for(found, speeds), "configured")) == first
