"""`kgs materialize`: which tables, and what it says of each."""

from click.testing import CliRunner

from kgs_core.cli.main import cli
from tests.sink import Sink, Storage

TEXT = """
group: g
kafka: {{bootstrap_servers: "127.0.0.1:9"}}
lake: {{root: {root}}}
topics:
  - {{topic: t, table: t, format: json, schema: {{n: long}}, latest_by_key: {{table: l, key: [n], tombstones: ignore}}}}
  - {{topic: u, table: u, latest_by_key: {{table: m}}}}
  - {{topic: v, table: v}}
"""


def test_it_brings_all_or_the_named_tables_up_to_date(tmp_path):
    Sink(Storage(str(tmp_path / "lake"))).started(1).ingest({0: (0, 20)})
    config = tmp_path / "kgs.yaml"
    config.write_text(TEXT.format(root=tmp_path / "lake"))

    def run(*arguments):
        done = CliRunner().invoke(cli, ["materialize", *arguments, "--config", str(config)])
        return done.exit_code, done.output.splitlines()

    status, (first, second) = run()
    assert (status, second) == (0, "m: nothing yet to derive it from")
    assert first.startswith(
        "l: 16 rows and 0 tombstones looked at in 1 commits, as of version 2, rebuilt: it was never"
    )
    assert run("l") == (0, ["l: 0 rows and 0 tombstones looked at in 0 commits, as of version 2"])
    status, lines = run("v")
    assert (status, lines) == (2, ["error: table v: no rule's latest_by_key names it: see 'topics'"])
