"""`kgs complete`: what it waits for, and its exit status."""

import json

import pytest

from kgs_core.cli.lake import complete
from kgs_core.errors import TransientError
from kgs_core.lake.rule.completeness import Completeness, Lateness
from kgs_core.lake.topics.complete import CompleteView

DONE = (Completeness("t", 2_000_000, 60.0),)  # 1970-01-01T00:33:20
LEARNT = Lateness(1_000, 1_990_000, 0.0, 12.5, 180.0)


@pytest.fixture
def run(configured, monkeypatch):
    """Runs the command on looks with these results; the last one stays. None: Kafka does not answer."""

    def with_looks(looks, *words):
        left = list(looks)

        def wanted(_self, _tables):
            found = left.pop(0) if len(left) > 1 else left[0]
            if found is None:
                raise TransientError("Kafka is away")
            return found

        monkeypatch.setattr(CompleteView, "wanted", wanted)
        monkeypatch.setattr(CompleteView, "_learnt", lambda *_: LEARNT)
        monkeypatch.setattr(complete, "LOOK_EVERY_S", 0.01)
        return configured(topics=[{"topic": "t"}])("complete", *words)

    return with_looks


WAIT = ("--at", "1970-01-01T00:30", "--wait")


@pytest.mark.parametrize(
    ("looks", "words", "status", "expected"),
    [
        ([DONE], WAIT[:2], 0, "t  complete at 1970-01-01 00:30:00Z"),
        ([()], (), 1, "no table: Kafka has no topic"),
        ([()], WAIT[:2], 1, "no table: Kafka has no topic"),
        ([(), DONE], WAIT, 0, "t  complete at"),
        ([DONE, None], ("--at", "1970-01-01T00:34", "--wait", "0.1"), 1, "Kafka is away"),
        ([(Completeness("t", None, 60.0, problem="away"),), None, DONE], WAIT, 0, "t  complete at"),
        ([None], (), 1, "Kafka is away"),
        ([DONE], ("--at", "0001-01-01T00:00+02:00"), 2, "give a time"),
    ],
)
def test_only_what_is_complete_ends_with_0_and_waiting_outlasts_kafkas_absence(run, looks, words, status, expected):
    found = run(looks, *words)
    assert expected in found.output
    assert found.exit_code == status


def test_of_named_tables_it_says_how_late_rows_came(run):
    words = (
        "of 1,000 rows since 1970-01-01 00:33:10Z came 50 % within 0 s, 99.9 % within 12.5 s, the latest after 180 s"
    )
    assert words in run([DONE], "t").output
    assert words not in run([DONE]).output
    assert json.loads(run([DONE], "t", "--json").output)[0]["learnt"]["p999_s"] == LEARNT.p999_s
