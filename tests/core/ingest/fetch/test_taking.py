"""What is taken of events that have come, and in which order, without a broker and without messages of librdkafka."""

import ctypes
import itertools

import numpy as np
import pytest
from confluent_kafka import KafkaError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kgs_core.accel.layout import CODE, NOBODY, PARTITION_END, SLOT
from kgs_core.ingest.fetch import session as native_session
from kgs_core.ingest.fetch.fetch_client import UnreadableError
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import OffsetRange, TopicPartition

CRC, END = KafkaError._BAD_MSG, PARTITION_END
WORDS = "failed its check"
TPS = [TopicPartition("t", n) for n in range(3)]


class Script:
    """librdkafka's side of it: after `assign`, what each log has from its offset on, in this order of partitions.

    A log is a list of (offset, code of an error or 0); an error comes once more with each assignment.
    """

    def __init__(self, logs, turns=()):
        self.logs, self.turns, self.waiting, self.events, self.taken = logs, turns, [], [], []

    def assign(self, positions):
        queues = {p.partition: self._from(p.partition, p.offset) for p in positions}
        order = [p for p in self.turns if p in queues] + [p for p in queues for _ in queues[p]]
        self.waiting = [queues[p].pop(0) for p in order if queues[p]]

    def _from(self, partition, start):
        return [(partition, at, code) for at, code in self.logs[partition] if code or at >= start]

    def incremental_assign(self, positions):
        waiting = self.waiting
        self.assign(positions)
        self.waiting = waiting + self.waiting

    def incremental_unassign(self, positions):
        gone = {p.partition for p in positions}
        self.waiting = [event for event in self.waiting if event[0] not in gone]

    def consume(self, count, _, into):
        """A message's address is its number here."""
        came, self.waiting = self.waiting[:count], self.waiting[count:]
        room = (ctypes.c_int64 * count).from_address(into)
        for i, event in enumerate(came):
            room[i] = len(self.events)
            self.events.append(event)
        return len(came)

    def list_topics(self, *_, **__):
        pass

    def topic_address(self, _):
        return 0

    def forget_topics(self):
        pass


@pytest.fixture(scope="module")
def scripted():
    """A session on a script, its loop `take` the real one; of what it takes, the script keeps partition and offset."""
    session = NativeFetchSession({"bootstrap.servers": "127.0.0.1:9", "group.id": "none", "log_level": 0})
    client, real = session._client, dict(session._loops)

    def on(logs, turns=()):
        script = Script(logs, turns)

        def look(_messages, first, end, *_):
            for i in range(first, end):
                partition, at, code = script.events[session._messages[i]]
                slot = session._tps.index(TPS[partition]) if TPS[partition] in session._tps else NOBODY
                session._notes[i] = slot, code, at, not code, 0, 0, 0
            return int((session._notes[first:end, CODE] == 0).sum())

        def fill(_messages, first, end, *_):
            notes = session._notes[first:end]
            kept = first + np.flatnonzero((notes[:, SLOT] != NOBODY) & (notes[:, CODE] == 0))
            script.taken += [script.events[session._messages[i]][:2] for i in kept]
            return 0

        session._loops = {"take": real["take"], "look": look, "fill": fill, "free": lambda *_: 0}
        session._client = script
        session._count, session._waiting_bytes, session._next, session._tps = 0, 0, {}, []
        session._gathering_since, session._are_small_waiting, session._passed_bytes = None, False, 0
        session._record_bytes = 1.0
        return session, script

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_session, "TopicColumns", lambda _: None)
        patch.setattr(native_session, "message_error", lambda _, code: KafkaError(code, WORDS))
        yield on
    session._loops, session._client, session._count = real, client, 0
    session.close()


def records(*offsets):
    return [(offset, 0) for offset in offsets]


@pytest.mark.parametrize("exact", [False, True])
def test_an_offset_that_is_given_twice_is_taken_once(scripted, exact):
    session, script = scripted({0: records(0, 1, 0, 1, 2)})
    if exact:
        list(session.read_exact({TPS[0]: OffsetRange(0, 3)}, 1.0))
    else:
        session.gather({TPS[0]: 0}, 1000, 0.0, 1.0)
    assert script.taken == [(0, 0), (0, 1), (0, 2)]


def test_an_exact_range_names_the_partition_in_trouble_and_misses_nothing_of_the_others_afterwards(scripted):
    session, script = scripted({0: [(0, CRC), (7, 0)], 1: records(0, 1)}, (0, 1, 1))
    with pytest.raises(UnreadableError, match=f"t:0: offset 0: {WORDS}") as raised:
        list(session.read_exact({TPS[0]: OffsetRange(0, 8), TPS[1]: OffsetRange(0, 0)}, 1.0))
    assert raised.value.troubles == {TPS[0]: (StopCause.CORRUPT, f"offset 0: {WORDS}")}
    (fetched,) = session.read_exact({TPS[1]: OffsetRange(0, 2)}, 1.0)
    assert (fetched.records, script.taken) == (2, [(1, 0), (1, 1)])


def test_an_exact_range_of_which_nothing_comes_names_the_partitions_that_are_silent(scripted):
    session, _ = scripted({0: records(0), 1: records(0, 1)})
    with pytest.raises(UnreadableError, match="t:0: 1 to 7") as raised:
        list(session.read_exact({TPS[0]: OffsetRange(0, 8), TPS[1]: OffsetRange(0, 2)}, 0.01))
    assert [(tp, cause) for tp, (cause, _) in raised.value.troubles.items()] == [(TPS[0], StopCause.NO_ANSWER)]


def test_what_lies_past_an_exact_range_is_kept_for_the_next_one_and_not_fetched_again(scripted, monkeypatch):
    session, script = scripted({0: [*records(0, 1, 4), (6, END)], 1: records(0, 1)}, (0, 0, 0, 0))
    list(session.read_exact({TPS[0]: OffsetRange(0, 3), TPS[1]: OffsetRange(0, 2)}, 1.0))
    assert script.taken == [(0, 0), (0, 1), (1, 0), (1, 1)]
    monkeypatch.setattr(script, "assign", None)
    monkeypatch.setattr(script, "incremental_assign", None)
    list(session.read_exact({TPS[0]: OffsetRange(3, 6), TPS[1]: OffsetRange(2, 2)}, 1.0))
    assert script.taken[4:] == [(0, 4)]


@st.composite
def logs_with_errors(draw):
    """Offsets with gaps, at most one error, and the log's end, behind markers perhaps."""
    found = {}
    for partition in range(3):
        offsets = list(itertools.accumulate(draw(st.lists(st.integers(1, 3), max_size=6))))
        log, last = records(*offsets), max(offsets, default=0)
        if draw(st.booleans()):
            at = draw(st.integers(0, len(log)))
            log.insert(at, (log[at][0] if at < len(log) else last + 1, CRC))
        found[partition] = [*log, (last + 1 + draw(st.integers(0, 2)), END)]
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    logs_with_errors(),
    st.lists(st.integers(0, 2), max_size=20),
    st.lists(st.integers(1, 7), min_size=40, max_size=40),
    st.booleans(),
)
def test_every_record_before_a_trouble_is_taken_once_and_none_behind_it(scripted, logs, turns, sizes, exact):
    """A driver that stops whatever is in trouble, as far as the others can be read."""
    session, script = scripted(logs, turns)
    position, stopped = dict.fromkeys(TPS, 0), set()
    for size in sizes:
        start = {tp: at for tp, at in position.items() if tp not in stopped}
        if exact:
            ends = {tp: OffsetRange(at, max(at, min(at + size, logs[tp.partition][-1][0]))) for tp, at in start.items()}
            before = len(script.taken)
            try:
                list(session.read_exact(ends, 0.1, chunk_bytes=size))
                position |= {tp: r.end for tp, r in ends.items()}
            except UnreadableError as e:
                stopped |= e.troubles.keys()
                del script.taken[before:]
        else:
            fetched = session.gather(start, size, 0.0, 0.0)
            position |= {tp: r.end for tp, r in fetched.ranges.items()}
            stopped |= fetched.troubles.keys()
    for partition, log in logs.items():
        wanted = [at for at, code in itertools.takewhile(lambda event: event[1] != CRC, log) if not code]
        found = [at for number, at in script.taken if number == partition]
        assert found == wanted[: len(found)]
        if exact and any(code == CRC for _, code in log):  # a range with the trouble in it is given up whole
            continue
        assert found == wanted
