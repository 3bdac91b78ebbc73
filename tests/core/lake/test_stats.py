"""The view from outside on a store that is slow: no other thread of the process may wait for it."""

from shutil import rmtree

import pytest

from kgs_core.lake.derived.latest_by_key import LatestByKeyTable
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics import stats
from kgs_core.lake.topics.stats import LakeView
from tests.core.lake.changing_hands import MemoryKafka, adopt, put_kafka
from tests.kgs_yaml import LONGS, kgs_yaml
from tests.loopback_http import LoopbackServer, QuietHandler
from tests.sink import Sink

EMPTY = b'<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>'
NO_KEY = b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>'


class EmptyStore(QuietHandler):
    """An S3 bucket with nothing in it."""

    def do_GET(self):  # noqa: N802 - http.server's name
        is_list = "list-type=2" in self.path
        self.reply(200 if is_list else 404, EMPTY if is_list else NO_KEY)


@pytest.fixture
def store_url():
    """A store answered by a thread of this very process."""
    with LoopbackServer(EmptyStore) as server:
        yield server.url


def test_while_a_store_is_asked_for_a_table_other_threads_run(store_url):
    """The thread that answers is one of them: where the question holds Python's lock, no answer ever comes."""
    options = {"AWS_ENDPOINT_URL": store_url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    options |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "timeout": "3s", "max_retries": "0"}
    settings = kgs_yaml("x", {}, lake={"root": "s3://bucket/lake", "storage_options": options})
    view = LakeView(settings, timeout_s=1.0)
    assert view._dead_letters("t_dead_letters") == 0


def view_of(monkeypatch, storage, **rule):
    """Kafka is from memory."""
    kafka = MemoryKafka()
    monkeypatch.setattr(kafka, "offsets", lambda tps, which, **_: dict.fromkeys(tps, 100))
    monkeypatch.setattr(stats, "admin_of", lambda *_: kafka)
    return LakeView(kgs_yaml(storage.root, LONGS | rule))


def test_a_lake_that_is_away_has_no_number_of_dead_letters(tmp_path, monkeypatch):
    """As a file system that is not mounted: there is nothing, and that is no error."""
    lake = tmp_path / "lake"
    sink = Sink(Storage(str(lake))).started(2)
    sink.ingest({0: (0, 3)})
    view = view_of(monkeypatch, sink.storage)
    assert [table.dead_letters for table in view.snapshot().tables] == [0]
    lake.rename(tmp_path / "away")
    for _ in range(2):
        assert [(table.rows, table.dead_letters) for table in view.snapshot().tables] == [(None, None)]


@pytest.mark.parametrize("table", ["t", "t_dead_letters"])
def test_of_a_table_that_is_not_there_any_more_no_figure_stays(tmp_path, monkeypatch, table):
    """Its log has nothing new, which is no error of the store's."""
    sink = Sink(Storage(str(tmp_path))).started(2)
    sink.ingest({0: (0, 12)})
    view = view_of(monkeypatch, sink.storage)

    def figures():
        (found,) = view.snapshot().tables
        return {"t": (found.rows, found.files, found.size_bytes), "t_dead_letters": found.dead_letters}[table]

    before = figures()
    (tmp_path / table).rename(tmp_path / "away")
    for _ in range(2):
        assert figures() in (None, (None, None, None))
        assert any("File not found" in each or f"table {table}: not there" in each for each in view.snapshot().problems)
    (tmp_path / "away").rename(tmp_path / table)
    assert figures() == before


def test_positions_that_were_handed_over_are_not_known(tmp_path, monkeypatch):
    """Not as those of a partition of which nothing was read yet."""
    sink = Sink(Storage(str(tmp_path))).started(2)
    sink.ingest({0: (0, 3)})
    view = view_of(monkeypatch, sink.storage)
    assert view.snapshot().tables[0].positions == {0: 3, 1: 0}
    put_kafka(monkeypatch, MemoryKafka())
    adopt(sink.storage)
    assert view.snapshot().tables[0].positions == {}


def test_newest_rows_are_seen_and_are_no_problem_while_they_are_built_again(tmp_path, monkeypatch):
    sink = Sink(Storage(str(tmp_path))).started(2)
    sink.ingest({0: (0, 12)})
    rule = {"newest_rows": {"table": "gold/t", "key": ["n"], "deletes": "ignore"}}
    view = view_of(monkeypatch, sink.storage, **rule)
    (spec,) = view.snapshot() and view.specs
    assert view.snapshot().tables[0].derived[0].version is None
    LatestByKeyTable(kgs_yaml(sink.storage.root, LONGS | rule), spec).materialize()
    snapshot = view.snapshot()
    (newest,) = snapshot.tables[0].derived
    assert (newest.table, newest.rows, snapshot.rows) == ("gold/t", 10, 10)
    rmtree(tmp_path / "gold")
    view.snapshot()  # its log is gone under this look
    snapshot = view.snapshot()
    assert (snapshot.tables[0].derived[0].version, snapshot.problems) == (None, ())
