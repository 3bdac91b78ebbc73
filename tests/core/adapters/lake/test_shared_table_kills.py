"""Any split of batches and any kill give the same rows, whichever of two owners of each topic commits."""

import random
import time

import pytest

from kgs_core.adapters.lake import combined_commit, delta_table, topic_table
from kgs_core.adapters.lake.audit import audit_lake
from kgs_core.adapters.lake.storage import Storage
from kgs_core.ports import CommitOutcome
from tests.core.adapters.lake.test_shared_table import settings_of
from tests.sink import Sink

POINTS = ("after-dead-letter-commit", "before-commit", "after-commit")


class KilledError(BaseException):
    """In the place of the end of the process."""


class Clock:
    """Real, but a sleep is over at once: nobody else works meanwhile, so only patience ends an owner's wait."""

    time = staticmethod(time.time)  # noqa: TID251 - files have ages

    def __init__(self):
        self._slept_s = 0.0

    def monotonic(self):
        return time.monotonic() + self._slept_s

    def sleep(self, seconds):
        self._slept_s += seconds


@pytest.mark.parametrize("commit", ["direct", "combined"])
@pytest.mark.parametrize("seed", range(5))
def test_any_split_and_any_kill(tmp_path, monkeypatch, seed, commit):  # noqa: PLR0915 - one story
    chance = random.Random(seed)
    storage = Storage(str(tmp_path))
    due = []

    def failpoint(name, *_):
        if due == [name]:
            due.clear()
            raise KilledError

    monkeypatch.setattr(topic_table, "failpoint", failpoint)
    monkeypatch.setattr(delta_table, "pause_after_error", lambda _: 0.0)
    monkeypatch.setattr(combined_commit, "time", Clock())

    def owner(topic):
        return Sink(storage, topic=topic, topic_id=f"id-{topic}", commit=commit).started(2)

    owners = {topic: [owner(topic), owner(topic)] for topic in "ab"}  # both believe that all of it is theirs
    known = {}  # what each has in memory, which may be stale
    kills = refusals = 0
    for _ in range(60):
        topic, number = chance.choice("ab"), chance.randrange(2)
        sink, place = owners[topic][number], (topic, number)
        other = (chance.choice("ab"), chance.randrange(2))
        for each in {other, place} - known.keys():
            known[each] = owners[each[0]][each[1]].table.positions({0, 1})
        at = known[place]
        chosen = chance.sample([0, 1], chance.randint(1, 2))
        batch = sink.read(
            {p: (at.next_offset[p], at.next_offset[p] + chance.randint(1, 12)) for p in chosen}, at.dead_letter_marks
        )
        due[:] = [chance.choice(POINTS)] if chance.random() < 0.3 else []
        try:
            outcome = sink.table.commit(batch)
            refusals += outcome is CommitOutcome.REFUSED
        except KilledError:
            owners[topic][number] = owner(topic)  # the next process knows nothing
            kills += 1
        due.clear()
        known.pop(place, None)
    assert kills
    assert refusals
    for topic in "ab":
        assert sum(owners[topic][0].assert_exact(2).values()) > 50
    assert all(table.ok for table in audit_lake(settings_of(storage), with_log=False).tables)
