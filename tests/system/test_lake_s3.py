"""The sink on every kind of store: the same tests on a local disk and on S3; stores that lie, fail and come back."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from deltalake import DeltaTable
from pyarrow.fs import FileSelector

from bench.delay_proxy import DelayProxy
from bench.object_servers import ObjectServer
from kgs_core.config import parse_settings
from kgs_core.config.settings import LakeSettings
from kgs_core.errors import PermanentError, TransientError, UnsafeError
from kgs_core.lake.delta.delta_log import load_transactions
from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.delta.probe import PROBE_FOLDER, probe
from kgs_core.lake.files.intent_store import IntentStore
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.kept_bills import BILL_FOLDER, KeptBills
from kgs_core.ports import CommitOutcome
from tests.core.lake.test_kept_bills import DAY, bill
from tests.one_column import file_of, table_at, values_in
from tests.sink import Sink
from tests.system.s3_meddler import DROP_CONDITIONS, LOSE_REPLIES, LOSE_REQUESTS, meddling
from tests.waiting import wait_until

NewLake = Callable[[], Storage]


def test_probe_accepts_the_store_again_and_again(new_lake: NewLake) -> None:
    storage = new_lake()
    for _ in range(3):
        probe(storage)


def test_consumers_that_probe_at_once_all_accept_the_store(new_lake: NewLake) -> None:
    storage = new_lake()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(probe, [storage] * 8)) == [None] * 8
    left = FileSelector(storage.path(PROBE_FOLDER), recursive=True, allow_not_found=True)
    assert storage.filesystem().get_file_info(left) == []


@pytest.mark.neighbours
@pytest.mark.chaos
@pytest.mark.parametrize("attempt", range(3))
def test_probe_refuses_a_store_that_ignores_conditions(s3_server: ObjectServer, attempt: int) -> None:
    with meddling(s3_server.port) as meddler:
        probe(s3_server.storage(f"right-{attempt}", meddler.port))
        meddler.order(DROP_CONDITIONS, 1)
        with pytest.raises(UnsafeError, match="let two writers commit the same version"):
            probe(s3_server.storage(f"wrong-{attempt}", meddler.port))


@pytest.mark.parametrize(
    "option", [{"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"aws_conditional_put": "dynamo:locks"}], ids=["rename", "put"]
)
def test_options_that_take_the_condition_away_are_refused(option: dict[str, str]) -> None:
    with pytest.raises(UnsafeError, match=r"lake\.storage_options: "):
        probe(Storage("s3://lake/x", {"AWS_REGION": "us-east-1", **option}))


def sink_of(storage: Storage, topic: str) -> Sink:
    return Sink(storage, topic=topic, topic_id=f"id-{topic}")


@pytest.mark.parametrize("topics", ["t", "ab"])
def test_rows_dead_letters_and_positions_land(new_lake: NewLake, topics: str) -> None:
    storage = new_lake()
    sinks = [sink_of(storage, topic).started(3) for topic in topics]
    for start in range(0, 36, 12):
        for sink in sinks:
            assert sink.ingest({0: (start, start + 12), 1: (start, start + 12)}) is CommitOutcome.COMMITTED
    assert [sink.assert_exact(3) for sink in sinks] == [{0: 36, 1: 36, 2: 0}] * len(topics)
    assert load_transactions(storage, "t")[f"g/{topics[0]}@id-{topics[0]}/1"] == 36


def test_stale_owner_is_refused_whole_and_a_disjoint_one_is_not(new_lake: NewLake) -> None:
    storage = new_lake()
    sink = Sink(storage).started(3)
    zombie, neighbour = Sink(storage), Sink(storage)
    overlapping, disjoint = zombie.read({0: (0, 20), 1: (0, 20)}), neighbour.read({2: (0, 4)})
    assert sink.ingest({0: (0, 10)}) is CommitOutcome.COMMITTED
    assert zombie.table.commit(overlapping) is CommitOutcome.REFUSED
    assert neighbour.table.commit(disjoint) is CommitOutcome.COMMITTED
    assert sink.assert_exact(3) == {0: 10, 1: 0, 2: 4}


@pytest.mark.chaos
@pytest.mark.parametrize("topics", ["t", "ab"])
def test_every_race_has_one_winner(new_lake: NewLake, topics: str) -> None:
    """For each topic; those of several race for the log's next entry, too."""
    storage = new_lake()
    sinks = {topic: [sink_of(storage, topic).started(1) for _ in range(4)] for topic in topics}
    with ThreadPoolExecutor(4 * len(topics)) as pool:
        for _ in range(10):
            commits = {}
            for topic, several in sinks.items():
                start = several[0].position(0)
                # of different ends: a loser with the winner's own range finds its batch in the table, and says so
                batches = [sink.read({0: (start, start + 4 + n)}) for n, sink in enumerate(several)]
                commits[topic] = [(sink, batch) for sink, batch in zip(several, batches, strict=True)]
            running = {t: [pool.submit(s.table.commit, b) for s, b in each] for t, each in commits.items()}
            for each in running.values():
                assert [c.result() for c in each].count(CommitOutcome.COMMITTED) == 1
    assert all(40 <= several[0].assert_exact(1)[0] <= 70 for several in sinks.values())


@pytest.mark.chaos
def test_dead_letters_are_written_once_when_killed_before_the_rows(new_lake: NewLake) -> None:
    storage = new_lake()
    sink = Sink(storage).started(1)
    sink.table._commit_dead_letters(sink.read({0: (0, 10)}))
    again = Sink(storage)
    for start, end in ((0, 5), (5, 30)):
        assert again.ingest({0: (start, end)}) is CommitOutcome.COMMITTED
    assert again.assert_exact(1) == {0: 30}


def test_maintenance_leaves_rows_positions_and_young_files_alone(new_lake: NewLake) -> None:
    storage = new_lake()
    sink = Sink(storage).started(1)
    for start in range(0, 40, 4):
        sink.ingest({0: (start, start + 4)})
    in_flight = sink.read({0: (40, 44)})
    upkeep = maintain_table(storage, "t")
    assert upkeep is not None
    assert (upkeep.files, upkeep.removed, upkeep.problem) == ((10, 1), 0, None)
    assert sink.table.commit(in_flight) is CommitOutcome.COMMITTED
    assert sink.assert_exact(1) == {0: 44}


@pytest.mark.neighbours
@pytest.mark.parametrize("partitions", [1, 100])
def test_commit_is_four_requests_for_any_number_of_partitions(s3_server: ObjectServer, partitions: int) -> None:
    """The file; the log behind the known entry and, at the same time, the file's age; the entry."""
    with DelayProxy(s3_server.port, 0.0) as proxy:
        storage = s3_server.storage(f"requests-{partitions}", proxy.port)
        table, apps = table_at(storage), [f"p{n}" for n in range(partitions)]
        assert (
            table.commit(dict.fromkeys(apps), dict.fromkeys(apps, 1), [file_of(storage, 0)]) is CommitOutcome.COMMITTED
        )
        before = len(proxy.requests)
        file = file_of(storage, 1)
        assert table.commit(dict.fromkeys(apps, 1), dict.fromkeys(apps, 2), [file]) is CommitOutcome.COMMITTED
        # Each once: on a busy machine the store's client may give up a connection and send the same request again
        requests = {(request.method, request.target) for request in proxy.requests[before:]}
        assert Counter(method for method, _ in requests) == {"PUT": 2, "GET": 1, "HEAD": 1}, requests


def test_writers_that_combine_share_entries_and_leave_no_intent(new_lake: NewLake) -> None:
    storage = new_lake()
    tables = [table_at(storage, commits="combined") for _ in range(6)]

    def write(number: int) -> None:
        for n in range(5):
            file = file_of(storage, 10 * number + n)
            outcome = tables[number].commit({f"p{number}": n or None}, {f"p{number}": n + 1}, [file])
            assert outcome is CommitOutcome.COMMITTED

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    assert values_in(storage) == [10 * number + n for number in range(6) for n in range(5)]
    assert tables[0].versions(["p0", "p5"]) == {"p0": 5, "p5": 5}
    assert DeltaTable(storage.uri("t"), storage_options=storage.delta_options()).version() < 30
    wait_until(lambda: not IntentStore(storage, "t").ages(), 10, "intents are removed beside what comes next")
    maintained = maintain_table(storage, "t")
    assert maintained is not None
    assert maintained.problem is None


@pytest.mark.neighbours
@pytest.mark.chaos
@pytest.mark.parametrize("commit", ["direct", "combined"])
@pytest.mark.parametrize("loss", [LOSE_REPLIES, LOSE_REQUESTS])
@pytest.mark.parametrize("times", [1, 3])
def test_commit_whose_reply_is_lost_is_counted_once(
    s3_server: ObjectServer, loss: str, times: int, commit: Literal["direct", "combined"]
) -> None:
    with meddling(s3_server.port) as meddler:
        sink = Sink(s3_server.storage(f"{loss}-{times}-{commit}", meddler.port), commit=commit).started(2)
        batch = sink.read({0: (0, 4), 1: (0, 3)})
        meddler.order(loss, times)
        assert sink.table.commit(batch) is CommitOutcome.COMMITTED
        assert meddler.left(loss) == 0
        assert sink.ingest({0: (4, 9)}) is CommitOutcome.COMMITTED
        assert sink.assert_exact(2) == {0: 9, 1: 3}


@pytest.mark.neighbours
@pytest.mark.chaos
@pytest.mark.slow
def test_server_killed_midway_is_a_transient_error_and_nothing_is_lost_or_doubled(s3_server: ObjectServer) -> None:
    here = s3_server.storage("killed")
    storage = Storage(
        here.root, {**here.options, "max_retries": "2"}
    )  # of the client's, in each of our own eight tries
    sink = Sink(storage).started(2)
    sink.ingest({0: (0, 8)})
    batch = sink.read({0: (8, 16), 1: (0, 8)})
    s3_server.kill()
    try:
        with pytest.raises(TransientError, match="table t_dead_letters: commit failed 8 times"):
            sink.table.commit(batch)
        with pytest.raises(TransientError, match="table t"):
            sink.read({0: (8, 16)}, {0: None})
    finally:
        s3_server.start()
    assert sink.table.commit(sink.read({0: (8, 16), 1: (0, 8)})) is CommitOutcome.COMMITTED
    assert sink.assert_exact(2) == {0: 16, 1: 8}


def test_of_a_days_bills_the_one_that_knows_most_is_kept(new_lake: NewLake) -> None:
    storage = new_lake()
    settings = parse_settings(
        b"group: g\nkafka: {bootstrap_servers: 'b:9092'}\nlake: {root: /x}\ntopics: [{topic: a, table: t}]",
        "kgs.yaml",
        {},
    )
    lake = LakeSettings(root=storage.root, storage_options=dict(storage.options))
    if "://" not in storage.root:
        Path(storage.root).mkdir(parents=True, exist_ok=True)
    kept = KeptBills(settings.model_copy(update={"lake": lake}))
    assert kept.load(DAY) is None
    assert [kept.keep(DAY, bill(known)) for known in (3600.0, 60.0, 7200.0)] == [True, False, True]
    assert kept.load(DAY) == bill(7200.0)
    folder = storage.path(BILL_FOLDER, "g")
    (info,) = storage.filesystem().get_file_info(FileSelector(folder))
    assert info.base_name == "2026-11-01.7200-0.json"
    with storage.filesystem().open_output_stream(f"{folder}/2026-11-01.86400-86400.json") as broken:
        broken.write(b"{")
    with pytest.raises(PermanentError, match="is not a bill"):
        kept.load(DAY)
    assert kept.keep(DAY, bill(9000.0))
    assert kept.load(DAY) == bill(9000.0)
    assert len(storage.filesystem().get_file_info(FileSelector(folder))) == 1
