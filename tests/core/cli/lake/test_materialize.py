"""`kgs materialize`: which tables, and what it says of each."""

from tests.kgs_yaml import LONGS
from tests.sink import Sink, Storage

TOPICS = [
    {"topic": "t", "table": "t", **LONGS, "newest_rows": {"table": "l", "key": ["n"], "deletes": "ignore"}},
    {"topic": "u", "table": "u", "newest_rows": {"table": "m"}},
    {"topic": "v", "table": "v"},
]


def test_it_brings_all_or_the_named_tables_up_to_date(tmp_path, configured):
    Sink(Storage(str(tmp_path / "lake"))).started(1).ingest({0: (0, 20)})
    kgs = configured(topics=TOPICS)

    def run(*arguments):
        done = kgs("materialize", *arguments)
        return done.exit_code, done.output.splitlines()

    status, (first, second) = run()
    assert (status, second) == (0, "m: nothing yet to derive it from")
    assert first.startswith(
        "l: 16 rows and 0 tombstones looked at in 1 commits, as of version 2, rebuilt: it was never"
    )
    assert run("l") == (0, ["l: 0 rows and 0 tombstones looked at in 0 commits, as of version 2"])
    status, lines = run("v")
    assert (status, lines) == (2, ["error: table v: no rule's newest_rows names it: see 'topics'"])
