"""`kgs erase`, and `keep` by `kgs maintain`: what they say; that they do what they say is tried in tests/core/lake."""

import json

from tests.kgs_yaml import LONGS
from tests.mock_kafka import mock_kafka
from tests.sink import Sink, Storage

TOPICS = [{"topic": "t", "table": "t", **LONGS}]


def test_it_asks_says_what_went_and_when_it_is_gone(tmp_path, configured):
    Sink(Storage(str(tmp_path / "lake"))).started(1).ingest({0: (0, 20)})
    kgs = configured(topics=TOPICS)

    def run(*options):
        done = kgs("erase", "t", *options)
        return done.exit_code, done.stdout.splitlines()

    would = ["table t: 8 records would be erased", "  t: 8 rows"]
    skipped = "  t_dead_letters: not looked at, it lacks a column of the condition: use --key for its records"
    assert run("--where", "n < 10", "--dry-run") == (0, [*would, skipped])
    assert run("--where", "n < 10") == (1, [])  # nobody answers
    status, lines = run("--where", "n < 10", "--yes")
    assert (status, lines[0], lines[3]) == (0, "table t: 8 records erased", skipped)
    assert lines[1] == "  t: 8 rows, 1 files replaced; version 4 had them"
    assert "in older versions until the first kgs maintain after" in lines[-1]
    status, lines = run("--where", "n < 11", "--yes", "--now", "--json")
    found = json.loads("\n".join(lines))
    assert (status, found["records"], found["vacuumed"], found["gone_at"]) == (0, 1, 2, None)
    assert run("--key", "nobody", "--dry-run") == (
        0,
        ["table t: 0 records would be erased", "  t: 0 rows", "  t_dead_letters: 0 rows"],
    )


def test_what_it_cannot_do_it_refuses(tmp_path, configured):
    Sink(Storage(str(tmp_path / "lake"))).started(1)
    kgs = configured(topics=TOPICS)
    for options, said in (
        (["t"], "give --key or --where"),
        (["t", "--key", "a", "--where", "n = 1"], "give --key or --where"),
        (["u", "--key", "a"], "table u: no topic fills it: name the own table of a topic, see 'topics'"),
        (["t", "--where", "n <"], "write an SQL condition, as customer = 'c-17'"),
    ):
        refused = kgs("erase", *options)
        assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_upkeep_ends_what_its_rule_does_not_keep(tmp_path, configured):
    sink = Sink(Storage(str(tmp_path / "lake"))).started(1)
    sink.ingest({0: (0, 20)})
    with mock_kafka() as kafka:
        kafka.topic("t")
        kgs = configured(kafka={"bootstrap_servers": kafka.bootstrap}, topics=[{**TOPICS[0], "keep": "30 days"}])
        would = kgs("maintain", "--table", "t", "--dry-run").output
        assert "t: 20 records would end (keep), 1 -> 1 files" in would
        assert len(sink.rows()) == 16
        assert "t: 20 records ended (keep), 0 -> 0 files" in kgs("maintain", "--table", "t").output
    assert (sink.rows(), sink.rows("t_dead_letters")) == ([], [])
