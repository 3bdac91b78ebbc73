"""What a look at the runs asks of a real instance in memory, and what it still knows."""

import pytest
from dagster import DagsterRunStatus as Status
from dagster._time import get_current_timestamp

from kgs_dagster import run_records
from kgs_dagster.run_records import RunRecords

TAGS = {"kgs/role": "consumer"}
HOUR_S = 3600.0


@pytest.fixture
def records(instance, monkeypatch):
    """With a list of how many records each look was given."""
    found = RunRecords(instance, TAGS)
    found.given = []
    ask = instance.get_run_records

    def counted(filters, **kwargs):
        answer = ask(filters, **kwargs)
        found.given.append(len(answer))
        return answer

    monkeypatch.setattr(instance, "get_run_records", counted)
    return found


def seen(records, now):
    return {record.dagster_run.run_id: record.dagster_run.status for record in records.look(now, HOUR_S)}


def test_what_has_ended_is_asked_for_once(instance, run_of, records, monkeypatch):
    monkeypatch.setattr(run_records, "OVERLAP_S", -5.0)  # as if these had ended long before the second look
    ended = {run_of(n, Status.FAILURE): Status.FAILURE for n in range(1, 6)}
    open_ = {run_of(9, Status.STARTED): Status.STARTED}
    now = get_current_timestamp()
    assert seen(records, now) == ended | open_
    assert sum(records.given) == 6
    records.given.clear()
    assert seen(records, now + 1) == ended | open_
    assert sum(records.given) == 1


@pytest.mark.parametrize("overlap_s", [60.0, -5.0], ids=["clocks alike", "a clock that is behind"])
def test_an_end_is_noticed_at_the_next_look_whatever_the_clocks_say(instance, run_of, records, monkeypatch, overlap_s):
    run = run_of(1, Status.STARTED)
    now = get_current_timestamp()
    assert seen(records, now) == {run: Status.STARTED}
    monkeypatch.setattr(run_records, "OVERLAP_S", overlap_s)
    instance.report_run_failed(instance.get_run_by_id(run))
    assert seen(records, now + 1) == {run: Status.FAILURE}
    assert seen(records, now + 2) == {run: Status.FAILURE}


def test_a_run_that_nobody_saw_open_is_found_and_forgotten_after_its_time(run_of, records):
    now = get_current_timestamp()
    assert seen(records, now) == {}
    run = run_of(1, Status.SUCCESS)
    assert seen(records, now + 1) == seen(records, now + HOUR_S - 30) == {run: Status.SUCCESS}
    assert seen(records, now + HOUR_S + 30) == {}


def test_a_run_that_was_deleted_is_known_no_longer_than_to_the_next_whole_look(instance, run_of, records):
    kept, gone = run_of(1, Status.STARTED), run_of(2, Status.STARTED)
    ended = run_of(3, Status.SUCCESS)
    now = get_current_timestamp()
    assert seen(records, now).keys() == {kept, gone, ended}
    instance.delete_run(gone)
    instance.delete_run(ended)
    assert seen(records, now + 1).keys() == {kept, ended}
    assert seen(records, now + run_records.WHOLE_LOOK_EVERY_S).keys() == {kept}


def test_a_look_that_fails_hides_nothing_from_the_next(instance, run_of, records, monkeypatch):
    run, other = run_of(1, Status.STARTED), run_of(2, Status.STARTED)
    now = get_current_timestamp()
    seen(records, now)
    instance.report_run_failed(instance.get_run_by_id(run))
    with monkeypatch.context() as broken:
        broken.setattr(instance, "get_run_records", lambda *_, **__: (_ for _ in ()).throw(OSError("locked")))
        with pytest.raises(OSError, match="locked"):
            seen(records, now + 1)
    assert seen(records, now + 2) == {run: Status.FAILURE, other: Status.STARTED}
