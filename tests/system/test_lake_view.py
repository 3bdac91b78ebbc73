"""The view from outside, on a real broker and a real table."""

import pyarrow as pa
from confluent_kafka import Producer
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from kgs_core.config import parse_settings
from kgs_core.lake.rule.positions import AppIds
from kgs_core.lake.topics.stats import LakeView


def settings_of(servers, root, prefix):
    text = f"""
group: g
kafka: {{bootstrap_servers: "{servers}"}}
lake: {{root: "{root}"}}
topics: [{{pattern: "{prefix}.*"}}]
"""
    return parse_settings(text.encode(), "kgs.yaml", {})


def commit(path, ids, positions, rows):
    actions = [Transaction(ids.position(p), offset) for p, offset in positions.items()]
    table = pa.table({"x": pa.array(range(rows), pa.int64())})
    write_deltalake(path, table, mode="append", commit_properties=CommitProperties(app_transactions=actions))


def test_it_grows_with_the_lake_and_the_log(kafka, admin, topic_prefix, tmp_path):
    topic = f"{topic_prefix}t"
    admin.create_topic(topic, 2)
    view = LakeView(settings_of(kafka.bootstrap_servers, tmp_path, topic_prefix))
    [table] = view.snapshot().tables
    assert (table.rows, table.version, table.lag, dict(table.ends)) == (None, None, None, {0: 0, 1: 0})

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition in (0, 0, 0, 1):
        producer.produce(topic, b"v", partition=partition)
    assert producer.flush(20) == 0
    ids = AppIds("g", topic, admin.topic_ids([topic])[topic])
    commit(tmp_path / topic, ids, {0: 2}, 2)
    [table] = view.snapshot().tables
    assert (table.rows, table.files, table.dead_letters) == (2, 1, 0)
    assert (dict(table.positions), dict(table.ends)) == ({0: 2, 1: None}, {0: 3, 1: 1})
    assert (table.lag_of(0), table.lag_of(1), table.lag) == (1, None, None)

    commit(tmp_path / topic, ids, {0: 3, 1: 1}, 2)
    snapshot = view.snapshot()
    [table] = snapshot.tables
    assert (snapshot.rows, snapshot.lag, snapshot.problems) == (4, 0, ())
    assert table.size_bytes == sum(f.stat().st_size for f in (tmp_path / topic).glob("*.parquet"))
    assert table.version == DeltaTable(tmp_path / topic).version() == 1


def test_without_kafka_nothing_is_known_and_nothing_is_zero(tmp_path):
    snapshot = LakeView(settings_of("127.0.0.1:9", tmp_path, "t"), timeout_s=1.0).snapshot()
    assert (snapshot.tables, snapshot.rows, snapshot.lag) == ((), None, None)
    assert len(snapshot.problems) == 1
    assert "127.0.0.1:9" in snapshot.problems[0]
