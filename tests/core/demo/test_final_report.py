"""What is said at the end: what was produced beside what has arrived, and the exit status that follows."""

import numpy as np
import pytest

from kgs_core.demo.final_report import (
    FinalReport,
    TopicResult,
    compare,
    group_lines,
    reason_to_skip,
    report_table,
    verdict,
)
from kgs_core.demo.run import exit_status
from kgs_core.demo.snapshot import DemoSnapshot, GroupFigures, Produced
from kgs_core.lake.rule import LogPart, StoredPositions, TableAudit, check_partition
from kgs_core.lake.topics.stats import LakeSnapshot, TableView
from kgs_core.model import TopicId
from tests.core.demo.demo_words import EWR, JFK, PRODUCED
from tests.rendered import lines_of


def last(*tables, problems=(), produced=PRODUCED):
    lake = LakeSnapshot(tables, problems)
    return DemoSnapshot("ended", 83.4, None, produced, None, lake, "", None, GroupFigures(0, 0, 0.0, None, 0))


def audited(topic, positions, rows):
    parts = [
        check_partition(StoredPositions(TopicId("i"), p, 0, position), rows[p], [], LogPart(absent="-"), "one_to_one")
        for p, position in positions.items()
    ]
    return TableAudit(topic, topic, "one_to_one", 1, tuple(parts))


def test_compare_counts_what_no_position_knows_of():
    """The audit alone cannot see a record that was produced and never read."""
    whole = audited("flights.ewr", {0: 1100, 1: 500}, {0: np.arange(1100), 1: np.arange(500)})
    assert compare(PRODUCED, [whole]) == (TopicResult("flights.ewr", 1600, 1600, 0, 0, 0),)
    short = audited("flights.ewr", {0: 1100}, {0: np.arange(1100)})
    assert compare(PRODUCED, [short]) == (TopicResult("flights.ewr", 1600, 1100, 500, 0, 0),)
    doubled = audited("flights.ewr", {0: 1100, 1: 500}, {0: np.arange(1100), 1: np.r_[:500, :3]})
    assert compare(PRODUCED, [doubled]) == (TopicResult("flights.ewr", 1600, 1603, 0, 3, 0),)


def test_audit_only_when_it_can_prove_something():
    done = LakeSnapshot((TableView("t", "t", positions={0: 5}, ends={0: 5}),), ())
    sent = Produced({}, 0, 0, 1.0, False)
    assert reason_to_skip(last(*done.tables)) == ""
    assert reason_to_skip(last(EWR)) == "100 records were not read yet"
    assert reason_to_skip(last(*done.tables, produced=None)) == "nothing was produced"
    assert reason_to_skip(last(*done.tables, produced=sent)) == "the generator gave no final figures"
    assert (
        reason_to_skip(last(EWR, JFK, problems=("no answer",))) == "not known what is unread of flights.jfk: no answer"
    )


EXACT = FinalReport((TopicResult("a", 10, 10, 0, 0, 0), TopicResult("b", 2000, 2000, 0, 0, 0)), audited=True)
LOST = FinalReport((TopicResult("a", 10, 9, 1, 0, 0),), audited=True)
UNSEEN = FinalReport((TopicResult("a", 10, 9, None, None, 1),), audited=False, skipped="1 records were not read yet")
FAILED = FinalReport(EXACT.topics, audited=True, problems=("consumer 1 did not end in order",))


def test_report():
    assert lines_of(report_table(EXACT)) == [
        "topic            records produced  rows in the lake  lost  doubled  unread",
        "a                              10                10     0        0       0",
        "b                           2,000             2,000     0        0       0",
        "all                         2,010             2,010     0        0       0",
    ]
    assert verdict(EXACT) == ["exactly once: 2,010 records produced, 2,010 rows in the lake, lost 0, doubled 0"]
    assert verdict(LOST)[-1].startswith("NOT PROVEN exactly once: 10 records produced, 9 rows in the lake, lost 1")
    assert verdict(UNSEEN) == ["the audit was skipped: 1 records were not read yet"]
    assert verdict(FAILED)[0] == "consumer 1 did not end in order"


def test_what_happened_to_the_group():
    assert group_lines(GroupFigures(3, 25, 1.254, 2.46, 4)) == [
        "3 rebalances moved 25 partitions, Rscore 1.25 in all",
        "consumers: 2.5 in the mean, 4 at most (spares not counted)",
    ]
    assert group_lines(GroupFigures(0, 0, 0.0, None, 0))[1].startswith("consumers: ? in the mean")


@pytest.mark.parametrize(
    ("report", "timed", "interrupted", "status"),
    [
        (EXACT, True, False, 0),
        (EXACT, True, True, 0),
        (LOST, True, False, 1),
        (LOST, False, True, 1),
        (UNSEEN, True, False, 1),
        (UNSEEN, True, True, 130),
        (UNSEEN, False, True, 0),
        (FAILED, True, False, 1),
        (FAILED, False, True, 1),
    ],
)
def test_exit_status_is_zero_only_for_a_proof_or_an_end_in_order(report, timed, interrupted, status):
    assert exit_status(report, timed=timed, interrupted=interrupted) == status
