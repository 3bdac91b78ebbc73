"""The judge and the bounds against runs that are wrong on purpose: each fault is named, and nothing else."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.system.chaos import bounds
from tests.system.chaos.bystander import Bystander
from tests.system.chaos.journal import Excuse, Journal
from tests.system.chaos.judge import Entry, crashes, judge, waits
from tests.system.chaos.producers import UNTOLD
from tests.system.chaos.witness import Use

A, B, C = (Entry("t", 0, offset, f"v{offset}") for offset in range(3))
ELSE = Entry("t", 0, 1, "another record at that offset")
NAMES = ("lost", "doubled", "foreign", "lost_by_kafka")


@pytest.mark.parametrize(
    ("acknowledged", "log", "rows", "wrong"),
    [
        ([A, B], [A, B, C], [A, B, C], {}),
        ([A, B], [A, B], [A], {"lost": [B]}),
        ([A], [A, B], [A], {"lost": [B]}),
        ([A], [A], [A, A], {"doubled": [A]}),
        ([A], [A], [A, B], {"foreign": [B]}),
        ([A, B], [A], [A], {"lost_by_kafka": [B]}),
        ([A._replace(offset=UNTOLD)], [A], [A], {}),
        ([B._replace(offset=UNTOLD)], [A], [A], {"lost_by_kafka": [B._replace(offset=UNTOLD)]}),
        ([A, B], [A, B], [A, ELSE], {"lost": [B], "foreign": [ELSE]}),
    ],
)
def test_what_is_wrong_has_a_name(
    acknowledged: Sequence[Entry], log: Sequence[Entry], rows: Sequence[Entry], wrong: Mapping[str, Sequence[Entry]]
) -> None:
    found = judge(dict.fromkeys(acknowledged, 0), set(log), Counter(rows), set())
    assert {name: entries for name in NAMES if (entries := getattr(found, name))} == wrong


def test_after_an_unclean_election_the_log_is_the_truth() -> None:
    """Acknowledged records may be gone; their rows are told apart, and what came after them may be unread."""
    found = judge({A: 0, B: 0}, {A, ELSE, C}, Counter([A, B]), {("t", 0)})
    assert [getattr(found, name) for name in NAMES] == [[], [], [], []]
    assert found.outdated == {("t", 0): [B]}
    unread = judge({A: 0, B: 0}, {A, ELSE}, Counter([A]), {("t", 0)})
    assert unread.lost == [ELSE]


def journal_with(tmp_path: Path, *excuses: tuple[float, float | None]) -> Journal:
    return Journal(tmp_path, print, [Excuse("x", begin, end) for begin, end in excuses])


def test_time_with_an_excuse_does_not_count(tmp_path: Path) -> None:
    journal = journal_with(tmp_path, (10.0, 20.0), (15.0, 25.0), (40.0, None))
    assert [journal.unexcused_s(*span) for span in ((0, 10), (0, 30), (12, 24), (24, 30), (30, 99))] == [
        10,
        15,
        0,
        5,
        10,
    ]


def test_a_wait_runs_from_acknowledgement_to_commit(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    for number, (at_ms, position) in enumerate([(10_000, 1), (30_000, 3)]):
        txn = {"txn": {"appId": "g/t@id/0", "version": position}}
        log.joinpath(f"{number:020}.json").write_text(
            f"{json.dumps({'commitInfo': {'timestamp': at_ms}})}\n{json.dumps(txn)}\n"
        )
    found = waits(tmp_path, {A: 9_000, B: 12_000, C: 29_000}, journal_with(tmp_path, (13.0, 20.0)))
    assert [(wait.offset, wait.seconds) for wait in found] == [(1, 11.0), (0, 1.0)]


def test_a_bound_is_longer_by_what_the_machine_was_slower(tmp_path: Path) -> None:
    busy = tmp_path / "busy.log"
    busy.write_text("10.0 1.00\n20.0 3.00\n30.0 0.90\n")
    bystander = Bystander(busy)
    assert [bystander.factor(*span) for span in ((9, 11), (19, 21), (29, 31), (9, 21), (90, 91))] == [1, 3, 1, 2, 1]
    assert not list(bounds.late("x", 25.0, 10.0, 19, 21, bystander))
    assert list(bounds.late("x", 25.0, 10.0, 9, 11, bystander)) == ["x: 25.0 s, bound 10 s x 1.0 for the machine"]
    assert list(bounds.late("x", None, 10.0, 9, 11, bystander)) == ["x: never, within 10 s"]


@pytest.mark.parametrize(("descriptors", "rss", "grows"), [(0, 0, 0), (1, 0, 1), (0, 1_000_000, 1), (1, 1_000_000, 2)])
def test_growth_is_named_and_a_short_life_says_nothing(descriptors: int, rss: int, grows: int) -> None:
    life = [Use(float(at), 50_000_000 + rss * at, 30 + descriptors * at) for at in range(0, 300, 5)]
    problems, judged = bounds.growing({("driver", 1): life, ("driver", 2): life[:20]})
    assert (len(problems), judged) == (grows, 1)


def test_who_begins_to_work_does_not_grow() -> None:
    life = [Use(float(at), 213_000_000 if at > 140 else 78_000_000, 121 if at > 250 else 60) for at in range(0, 300, 5)]
    assert bounds.growing({("controller", 1): life}) == ([], 1)


def test_a_process_that_crashes_is_named(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    for name, words in (("well", "pass"), ("killed", "os.kill(os.getpid(), 9)"), ("crashed", "os.abort()")):
        with (tmp_path / f"{name}.log").open("wb") as log:
            subprocess.run([sys.executable, "-c", f"import os; {words}"], check=False, stderr=log, env=environ)
    assert crashes(tmp_path) == ["crashed.log: Fatal Python error: Aborted"]
