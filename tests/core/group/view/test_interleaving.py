"""The view says the same however the topics interleave, and whatever comes twice."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    MemberAssignment,
    Phase,
    Report,
    RunState,
    Target,
    Tombstone,
)
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import TopicPartition
from tests.core.group.view.group_words import at, gives, heartbeat, member, report, target, view_of

NAMES = ["1a", "1b", "2a", "2b"]


sequences = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "p", "pq"]), st.none() | st.integers(0, 9)), max_size=8
)
phases = st.sampled_from([Phase.READING, Phase.READING, Phase.ENDED])


@st.composite
def report_logs(draw):
    records = []
    for offset, (name, owned, applied) in enumerate(draw(sequences)):
        full = draw(st.booleans())
        message = report(name, owned, applied, offset, draw(phases)) if full else heartbeat(name, offset, draw(phases))
        records.append(at(offset, message, ms=1000 * offset))
    return records


@st.composite
def queues(draw, consumer):
    """Of an incarnation that is dead no Assignment is written."""
    records, dead = [], set()
    for offset, (letter, owned) in enumerate(
        draw(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "p"])), max_size=4))
    ):
        name = f"{consumer}{letter}"
        if name in dead:
            continue
        if draw(st.integers(0, 3)) == 0:
            dead.add(name)
            records.append(at(offset, Tombstone(member(name))))
        else:
            records.append(at(offset, gives(name, owned, retire=draw(st.booleans()))))
    return records


targets = st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=4), max_size=3).map(
    lambda lists: [at(i, target(" ".join(known), c1="p")) for i, known in enumerate(lists)]
)
desired = st.lists(
    st.sampled_from([DesiredState(RunState.PAUSED, "", 0), DesiredVersion("1", "", "", 0)]), max_size=3
).map(lambda found: [at(i, message) for i, message in enumerate(found)])
topics = st.tuples(report_logs(), queues(1), queues(2), targets, desired)


def interleaved(data, parts):
    parts = [list(part) for part in parts if part]
    records = []
    while parts:
        part = data.draw(st.sampled_from(parts))
        records.append(part.pop(0))
        parts = [part for part in parts if part]
    return records


@given(topics, st.data())
def test_how_topics_interleave_does_not_matter(parts, data):
    one = view_of(*(record for part in parts for record in part), now=50.0)
    other = view_of(*interleaved(data, parts), now=50.0)
    assert other == one
    assert list(other.members) == list(one.members)


@given(topics, st.data())
def test_one_by_one_is_as_all_at_once_but_for_silence(parts, data):
    records = interleaved(data, parts)
    view = GroupView()
    for record in records:
        view = view.take(record, 50.0)

    def deaf(found):
        silent = {"last_seen_at": None, "positions_since": None}
        return replace(found, members={i: replace(m, **silent) for i, m in found.members.items()}, since=None)

    assert deaf(view) == deaf(view_of(*records, now=50.0))


@given(topics, st.data())
def test_whatever_is_sent_again_changes_nothing(parts, data):
    records = interleaved(data, parts)
    view = view_of(*records, now=50.0)
    again = [record for record in records if data.draw(st.booleans())]
    assert view.take_all(again, 90.0) == view


@given(topics)
def test_nobody_is_forgotten_who_may_own_something(parts):
    """Whoever an Assignment or a full report names is a member, or is dead."""
    view = view_of(*(record for part in parts for record in part))
    named = {
        r.message.member.incarnation
        for part in parts
        for r in part
        if isinstance(r.message, MemberAssignment | Report | Heartbeat)
    }
    assert named == set(view.members) | (view.dead & named)
    assert not set(view.members) & view.dead
    for known in view.members.values():
        assert known.joined == list(view.members).index(known.member.incarnation)
    assert all(isinstance(tp, TopicPartition) for tp in view.current())
    assert view.target is None or isinstance(view.target.message, Target)
