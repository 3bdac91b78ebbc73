"""Dead letters that become rows: once, whatever is killed, run again or run beside; and the audit knows of them."""

import pytest

from kgs_core.errors import ConfigError, TransientError, UnsafeError
from kgs_core.ingest.replay.redrive import Redrive, TopicRedrive
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.lake.delta.table_log import TableLog
from kgs_core.lake.letters.letter_filter import EVERY_LETTER, LetterFilter
from kgs_core.ports import CommitOutcome
from tests import sink as sinks
from tests.core.ingest.letters import Chosen, rule_of_then
from tests.core.lake.changing_hands import MemoryKafka, adopt, put_kafka
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.sink import FakeRecord, Sink


def settings_of(storage, group="g", **rule):
    return kgs_yaml(storage.root, LONGS | rule, group=group)


def redriven(storage, chosen=EVERY_LETTER, dry_run=False, **settings):
    return Redrive(settings_of(storage, **settings), "t").run(chosen, dry_run=dry_run)


@pytest.fixture
def sink(storage, monkeypatch):
    """Forty records of partition 0, ten of partition 1. Every fifth is a value of today's rule that was none then."""
    monkeypatch.setattr(FakeRecord, "value", value)
    sink = Sink(storage).started(2)
    then = rule_of_then(lambda offset: offset % 10 == 4, "column n: a text, wanted is a whole number (long)")
    monkeypatch.setattr(sinks, "process_topic", then(sinks.process_topic))
    for start in range(0, 40, 10):
        sink.ingest({0: (start, start + 10)})
    sink.ingest({1: (0, 10)})
    return sink


def value(record):
    """Offsets that end with 9 are no JSON, those that end with 4 have a number as text: what a better rule takes."""
    if record.at % 10 == 9:
        return b"bad"
    return b'{"n": %d}' % (record.number * 1_000_000 + record.at)


def assert_exact(storage, offsets, group="g"):
    """These offsets of partition 0 are rows, once; and the audit finds nothing."""
    rows = [(r["_offset"], r["n"]) for r in Sink(storage).rows() if r["_partition"] == 0]
    assert sorted(rows) == [(o, o) for o in sorted(offsets)]
    found = audit_lake(settings_of(storage, group), with_log=False)
    assert found.ok, found


GOOD = [o for o in range(40) if not sinks.bad(o)]
WRONG_TYPE = frozenset({"wrong_type"})
MENDED = [o for o in range(40) if o % 10 == 4]


def test_letters_that_todays_rule_takes_become_rows_once(storage, sink):
    assert_exact(storage, GOOD)
    found = redriven(storage)
    assert (found.letters, found.passed, found.rows, found.done) == (10, 5, 5, 0)
    assert dict(found.failed) == {"not_json": 5}
    assert found.examples["not_json"].endswith("9: [not_json] not a JSON object")
    assert_exact(storage, GOOD + MENDED)
    again = redriven(storage)
    assert (again.letters, again.passed, again.done, again.failed["not_json"]) == (10, 0, 5, 5)
    assert_exact(storage, GOOD + MENDED)


def test_a_dry_run_counts_and_changes_nothing(storage, sink):
    before = sink.files(), sink.rows()
    found = redriven(storage, dry_run=True)
    assert (found.passed, found.failed["not_json"]) == (5, 5)
    assert (sink.files(), sink.rows()) == before
    assert_exact(storage, GOOD)


def test_letters_say_their_code_and_are_chosen_by_it(storage, sink):
    errors = {r["_offset"]: r["error"] for r in sink.rows("t_dead_letters") if r["_partition"] == 0}
    assert errors[9] == "[not_json] not a JSON object"
    assert errors[14] == "[wrong_type] column n: a text, wanted is a whole number (long)"
    assert redriven(storage, LetterFilter(frozenset({"not_json"})), dry_run=True).letters == 5
    found = redriven(storage, Chosen(WRONG_TYPE, frozenset({0}), offsets=range(14, 34)))
    assert (found.letters, found.passed) == (2, 2)
    assert_exact(storage, [*GOOD, 14, 24])
    rest = redriven(storage, LetterFilter(WRONG_TYPE))
    assert (rest.letters, rest.passed, rest.done) == (5, 3, 2)
    assert_exact(storage, GOOD + MENDED)


def test_what_the_consumer_reads_again_is_left_to_it(storage, sink):
    """Killed between dead letters and rows: the letter is there, at the position itself, and will be read once more."""
    assert sink.ingest({0: (40, 44)}) is CommitOutcome.COMMITTED
    assert sink.table._commit_dead_letters(sink.read({0: (44, 50)})) is CommitOutcome.COMMITTED
    found = redriven(storage)
    assert (found.letters, found.passed, found.unsettled) == (12, 5, 2)
    assert sink.ingest({0: (44, 50)}) is CommitOutcome.COMMITTED
    assert_exact(storage, [*GOOD, *MENDED, *(o for o in range(40, 50) if not sinks.bad(o))])
    assert redriven(storage).passed == 1


def test_a_letter_in_an_accepted_gap_stays_one(storage, sink):
    assert sink.ingest({0: (40, 44)}) is CommitOutcome.COMMITTED
    assert sink.table._commit_dead_letters(sink.read({0: (44, 50)})) is CommitOutcome.COMMITTED
    assert sink.table.accept_gap(0, 44, 50) is CommitOutcome.COMMITTED
    assert redriven(storage).unsettled == 2
    assert_exact(storage, GOOD + MENDED + [40, 41, 42, 43])


def test_of_two_at_once_one_looks_again(storage, sink, monkeypatch):
    commit, others = TopicRedrive._commit, []

    def outrun(self, base, rows):
        if not others:
            others.append(None)
            others[0] = redriven(storage, Chosen(offsets=range(20)))
        return commit(self, base, rows)

    monkeypatch.setattr(TopicRedrive, "_commit", outrun)
    found = redriven(storage)
    assert (others[0].passed, found.passed, found.done, found.failed["not_json"]) == (3, 2, 3, 5)
    assert_exact(storage, GOOD + MENDED)


def test_another_of_as_many_letters_and_the_same_sum_of_offsets_is_not_taken_for_ours(storage, sink, monkeypatch):
    write, others = TableLog.write, []

    def outrun(*args):
        if others:
            return write(*args)
        others.append(None)
        others[0] = redriven(storage, Chosen(WRONG_TYPE, frozenset({0}), offsets={14, 24}))
        raise ConnectionError("no reply")

    monkeypatch.setattr(TableLog, "write", outrun)
    found = redriven(storage, Chosen(WRONG_TYPE, frozenset({0}), offsets={4, 34}))
    assert (others[0].passed, found.passed) == (2, 2)
    assert_exact(storage, GOOD + MENDED)


def test_one_that_is_outrun_for_ever_says_so(storage, sink, monkeypatch):
    monkeypatch.setattr(TopicRedrive, "_commit", lambda *_: CommitOutcome.REFUSED)
    with pytest.raises(TransientError, match="others redrive it all the time"):
        redriven(storage)


def test_a_table_that_changes_hands_meanwhile_refuses(storage, sink, monkeypatch):
    put_kafka(monkeypatch, MemoryKafka())
    commit = TopicRedrive._commit

    def adopted(self, base, rows):
        adopt(storage)
        return commit(self, base, rows)

    with monkeypatch.context() as patched:
        patched.setattr(TopicRedrive, "_commit", adopted)
        with pytest.raises(UnsafeError, match="group g has handed it over"):
            redriven(storage)
    assert redriven(storage, group="h").passed == 5
    assert_exact(storage, GOOD + MENDED, group="h")


def without_fours(rows, topic):
    """A transform that leaves out every second row of what is redriven."""
    return rows.filter([n % 20 != 4 for n in rows["n"].to_pylist()])


def test_a_transform_is_asked_too_and_may_leave_rows_out(storage, sink):
    rule = {"rows": "filter", "transform_arrow": f"{__name__}:without_fours"}
    found = redriven(storage, LetterFilter(partitions=frozenset({0})), **rule)
    assert (found.passed, found.dropped) == (2, 2)
    rows = [r["_offset"] for r in sink.rows() if r["_partition"] == 0 and sinks.bad(r["_offset"])]
    assert sorted(rows) == [14, 34]
    assert audit_lake(settings_of(storage, **rule), with_log=False).ok


def test_what_cannot_be_redriven_is_refused_with_its_reason(storage, sink):
    with pytest.raises(ConfigError, match="table u: no topic fills it"):
        Redrive(settings_of(storage), "u")
    with pytest.raises(UnsafeError, match="its columns are not the configured ones"):
        redriven(storage, schema={"n": "long", "m": "string"})
