"""`kgs redrive`: what it says; that it does what it says is tried in tests/core/ingest."""

import json
from collections import Counter

from kgs_core.cli.lake.redrive import lines
from kgs_core.ingest.replay.redrive_result import RedriveResult
from tests.kgs_yaml import LONGS
from tests.sink import Sink, Storage

FOUND = RedriveResult(
    "bronze/orders", 1_200, 1_000, 1_000, 3, 2, 0, Counter(not_json=195), {"not_json": "orders:0 at 9: x"}
)


def test_it_says_how_many_pass_and_why_the_others_do_not():
    assert [*lines(FOUND, dry_run=True)] == [
        "table bronze/orders: 1,200 dead letters, 1,000 would become 1,000 rows",
        "  3 were rows already",
        "  2 are not settled: their records are read again, or lie in an accepted gap",
        "  195 stay, not_json: e.g. orders:0 at 9: x",
    ]
    assert next(lines(FOUND, dry_run=False)).endswith("1,000 became 1,000 rows")


def test_the_command_takes_a_choice_and_refuses_what_it_does_not_know(tmp_path, configured):
    Sink(Storage(str(tmp_path / "lake"))).started(1).ingest({0: (0, 20)})
    kgs = configured(topics=[{"topic": "t", "table": "t", **LONGS}])
    found = kgs("redrive", "t", "--code", "not_json", "--partition", "0", "--since", "2001-01-01", "--dry-run")
    assert (found.exit_code, found.output.splitlines()[0]) == (0, "table t: 4 dead letters, 0 would become 0 rows")
    as_json = json.loads(kgs("redrive", "t", "--code", "not_json", "--dry-run", "--json").output)
    assert (as_json["letters"], as_json["failed"]) == (4, {"not_json": 4})
    assert as_json["examples"]["not_json"].startswith("t:0 at ")
    for option, value, said in (
        ("--code", "colour", "--code: 'colour': no such code: use one of bad_header, bad_timestamp"),
        ("--since", "noon", "--since: 'noon': write a time as 2026-11-15T08:00"),
    ):
        refused = kgs("redrive", "t", option, value)
        assert (refused.exit_code, said in refused.output) == (2, True)
