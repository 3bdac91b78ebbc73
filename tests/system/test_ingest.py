"""One consumer over everything at once: formats, processors, transactions, codecs, topics and partitions that come.

Transforms come from the folder of its configuration, and nothing from its working directory, wherever Spark's JVM
starts Python workers of either kind.
"""

import datetime as dt
import hmac
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.ingest.replay.redrive import Redrive
from tests.core.ingest.masked_lake import everything_in
from tests.system import test_route
from tests.system.pipeline import JSON_FIELDS, ConsumerProcess, Pipeline, json_values, produce
from tests.system.test_shared_table import assert_exact
from tests.topics import create_partitions
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow(60), pytest.mark.timeout(600)]
JSON_RULE = {"format": "json", "schema": JSON_FIELDS}
HOOKED = {
    "arrow": {"transform_arrow": "hooks:arrow_double"},
    "spark": {"transform": "hooks:spark_double"},
    "twiceread": {"transform": "hooks:spark_twice_read"},
    "odd": {"transform": "hooks:spark_odd", "rows": "filter"},
    "limited": {"transform": "hooks:spark_limited", "rows": "any"},
    "raises": {"transform": "hooks:spark_raises"},
    "strict": {"on_error": "stop"},
    "strictspark": {"on_error": "stop", "transform": "hooks:spark_double"},
    "json": {},
}
NESTED_RULE = {
    "format": "json",
    "schema": {
        "i": "long",
        "s": {"d": "decimal(10,2)", "l": "array<struct<x:int,day:date>>", "at": "timestamp"},
        "m": "map<string,struct<b:binary>>",
        "small": "byte",
    },
    "unknown_fields": "rescue",
    "key_format": "json",
    "key_schema": {"id": "int"},
    "headers": {"trace": "traceparent"},
}
RULES = [{"pattern": r"ingest\.raw.*"}] + [
    {"pattern": rf"ingest\.{name}-.*", **JSON_RULE, **rule} for name, rule in HOOKED.items()
]
RULES += [
    {"pattern": r"ingest\.nested-.*", **NESTED_RULE},
    {"pattern": r"ingest\.nestedspark-.*", **NESTED_RULE, "transform": "hooks:spark_nested"},
    {"pattern": r"ingest\.shared-.*", "table": "shared", "topic_column": "topic", **JSON_RULE},
]
MASKED = {**JSON_RULE, "mask": {"s": "hash", "_key": "hash"}}
RULES += [{"pattern": rf"ingest\.masked{name}-.*", **MASKED, **HOOKED[name or "json"]} for name in ("", "spark")]
RULES.append({**RULES[-3], "pattern": r"ingest\.sharedspark-.*", "table": "sharedspark", **HOOKED["spark"]})
RULES.append({"topic": "ingest.routed", **test_route.RULE, **test_route.ROUTE, **HOOKED["spark"]})
HOSTILE = "open(__file__ + '.was_run', 'w').close()\nraise ImportError('from the working directory')\n"


@pytest.fixture(scope="module")
def pipeline(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    return Pipeline(tmp_path_factory.mktemp("ingest"), kafka.bootstrap_servers, RULES, batch_bytes=100_000)


@pytest.fixture(scope="module")
def consumer(pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerProcess]:
    """One consumer for the whole module: it finds each test's topics as they appear."""
    cwd = tmp_path_factory.mktemp("cwd")
    for name in ("yaml", "hooks", "pandas", "confluent_kafka"):
        (cwd / f"{name}.py").write_text(HOSTILE)
    with pipeline.consumer(cwd=cwd) as process:
        yield process
        process.terminate()
    assert list(cwd.glob("*.was_run")) == []


def ingest(pipeline: Pipeline, consumer: ConsumerProcess, topic: str, values: list[bytes | None]) -> None:
    pipeline.admin.create_topic(topic, 3)
    produce(pipeline.bootstrap, topic, values)
    pipeline.wait_caught_up([topic])
    consumer.assert_alive()


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_raw_values_of_every_codec(pipeline: Pipeline, consumer: ConsumerProcess, codec: str) -> None:
    topic = f"ingest.raw-{codec}"
    pipeline.admin.create_topic(topic, 4)
    values: list[bytes | None] = [bytes([i % 256]) * (i % 700) for i in range(3000)]
    produce(pipeline.bootstrap, topic, [*values, None, b""], **{"compression.type": codec})
    pipeline.wait_caught_up([topic])
    pipeline.assert_exact(topic)
    row = next(r for r in pipeline.rows(topic) if r["_key"] == b"7")
    assert row["_headers"] == [{"key": "n", "value": b"7"}]
    assert row["_timestamp"].tzinfo is not None


@pytest.mark.parametrize("name", ["json", "arrow", "spark", "twiceread"])
def test_json_to_typed_columns(pipeline: Pipeline, consumer: ConsumerProcess, name: str) -> None:
    topic = f"ingest.{name}-typed"
    ingest(pipeline, consumer, topic, [v if i % 40 else b"{bad" for i, v in enumerate(json_values(0, 3000))])
    pipeline.assert_exact(topic, raw=False)
    rows = pipeline.rows(topic)
    assert len(rows) == 3000 - 75
    if name in ("arrow", "spark"):
        assert all(row["twice"] == 2 * row["i"] for row in rows)


def test_dataframes_go_into_the_tables_of_a_route(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    ingest(pipeline, consumer, "ingest.routed", [*test_route.values(0, 2000)])
    test_route.assert_exact(pipeline, "ingest.routed", 2000)


@pytest.mark.parametrize("table", ["shared", "sharedspark"])
def test_several_topics_in_one_table(pipeline: Pipeline, consumer: ConsumerProcess, table: str) -> None:
    topics = [f"ingest.{table}-{name}" for name in "ab"]
    for topic in topics:
        pipeline.admin.create_topic(topic, 2)
        produce(pipeline.bootstrap, topic, [v if i % 40 else b"{bad" for i, v in enumerate(json_values(0, 1000))])
    pipeline.wait_caught_up(topics)
    consumer.assert_alive()
    assert_exact(pipeline, topics, table)
    assert all(row["twice"] == 2 * row["i"] for row in pipeline.rows(table) if table == "sharedspark")


def test_masked_fields_are_alike_in_both_processors(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    found = []
    for topic in ("ingest.masked-a", "ingest.maskedspark-a"):
        ingest(pipeline, consumer, topic, [*(b'{"i": %d, "s": "TOKEN%d"}' % (i, i % 7) for i in range(300)), b"{TOKEN"])
        found.append(sorted((row["i"], row["s"], row["_key"]) for row in pipeline.rows(topic)))
        redriven = Redrive(pipeline.settings, topic).run(dry_run=True)
        assert (redriven.passed, dict(redriven.failed)) == (0, {"not_json": 1}), "read from Kafka once more"
    assert found[0] == found[1]
    wanted = [hmac.new(b"0123456789abcdef", b"TOKEN%d" % (i % 7), "sha256").hexdigest() for i in range(300)]
    assert [s for _, s, _ in found[0]] == wanted
    assert not [each for each in everything_in(pipeline.lake) if b"TOKEN" in each]


@pytest.mark.parametrize("name", ["nested", "nestedspark"])
def test_nested_values_keys_headers_and_what_has_no_column(
    pipeline: Pipeline, consumer: ConsumerProcess, name: str
) -> None:
    topic = f"ingest.{name}-a"
    pipeline.admin.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": pipeline.bootstrap})
    for i in range(300):
        value = {
            "i": i,
            "s": {"d": f"{i}.50", "l": [{"x": i, "day": "2026-01-31", "new": i}, None], "at": "2026-01-31T12:00:00Z"},
            "m": {"k": {"b": "YQ=="}},
            "small": i % 100,
        }
        key = b'{"id": "no number"}' if i % 50 == 1 else b'{"id": %d}' % i if i % 2 else None
        trace = b"\xff" if i % 50 == 2 else b"00-%d" % i
        producer.produce(topic, json.dumps(value), key, headers=[("traceparent", b"0"), ("traceparent", trace)])
    assert producer.flush(30) == 0
    pipeline.wait_caught_up([topic])
    consumer.assert_alive()
    errors = [row["error"] for row in pipeline.rows(f"{topic}_dead_letters")]
    assert len([e for e in errors if e.startswith("[wrong_type] key: column id: a text")]) == 6
    assert errors.count("[not_utf8] header traceparent: not UTF-8") == 6
    rows = {row["i"]: row for row in pipeline.rows(topic)}
    assert set(rows) == {i for i in range(300) if i % 50 not in (1, 2)}
    day, at = dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    for i, row in rows.items():
        assert row["s"] == {"d": Decimal(f"{i}.50"), "l": [{"x": i, "day": day}, None], "at": at}
        assert (row["m"], row["small"]) == ([("k", {"b": b"a"})], i % 100)
        assert (row["key_id"], row["trace"]) == (i if i % 2 else None, f"00-{i}")
        assert json.loads(row["_rescued"]) == {"s": {"l": [{"new": i}, None]}}
        assert name == "nested" or row["first"] == i
    found = json.loads(pipeline.kgs("schema", "topic", topic, "--json").stdout)
    assert (found["records"], found["fitting"], found["read_in_time"]) == (300, 300, True)
    assert found["schema"] == {
        "i": "long",
        "s": "struct<d:string,l:array<struct<x:long,day:date,new:long>>,at:timestamp>",
        "m": "struct<k:struct<b:string>>",
        "small": "long",
    }


def test_without_spark_the_same_records_make_the_same_tables(
    pipeline: Pipeline, consumer: ConsumerProcess, kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    """What most tests run on against what users do; a DataFrame's work is done on Arrow there."""
    topics = {name: f"ingest.{name}-both" for name in ("raw", "json", "arrow", "spark")}
    for topic in topics.values():
        pipeline.admin.create_topic(topic, 3)
        produce(pipeline.bootstrap, topic, [v if i % 40 else b"{bad" for i, v in enumerate(json_values(0, 2000))])
    hooks = {"raw": {}, "json": JSON_RULE, "arrow": {**JSON_RULE, **HOOKED["arrow"]}}
    rules = [{"topic": topic, **hooks["arrow" if name == "spark" else name]} for name, topic in topics.items()]
    beside = Pipeline(tmp_path, kafka.bootstrap_servers, rules, batch_bytes=100_000)
    with beside.consumer(KGS_BATCH_RUNNER="local"):
        beside.wait_caught_up([*topics.values()])
    pipeline.wait_caught_up([*topics.values()], timeout_s=180)
    consumer.assert_alive()
    assert beside.positions(topics.values()) == pipeline.positions(topics.values())
    for topic in topics.values():
        for table in (topic, f"{topic}_dead_letters"):
            local, spark = (by_offset(each.rows(table)) for each in (beside, pipeline))
            assert local == spark
            assert local or topic == topics["raw"], "good and bad ones"


def by_offset(rows: list[dict[str, Any]]) -> dict[tuple[int, int], dict[str, Any]]:
    found = {(row["_partition"], row["_offset"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_filter_keeps_at_most_one_row_an_offset(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    ingest(pipeline, consumer, "ingest.odd-a", list(json_values(0, 2000)))
    assert sorted(row["i"] for row in pipeline.rows("ingest.odd-a")) == list(range(1, 2000, 2))


def test_transform_that_leaves_records_unread_is_stopped_before_they_are_lost(
    pipeline: Pipeline, consumer: ConsumerProcess
) -> None:
    topic = "ingest.limited-a"
    pipeline.admin.create_topic(topic, 1)
    produce(pipeline.bootstrap, topic, json_values(0, 60_000))
    reasons = consumer.wait_stopped(f"{topic}:0")
    assert "did not read all rows" in reasons[f"{topic}:0"]
    assert pipeline.rows(topic) == []


def test_transform_that_raises_stops_its_own_topic_only(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    pipeline.admin.create_topic("ingest.raises-a", 1)
    produce(pipeline.bootstrap, "ingest.raises-a", json_values(0, 10))
    reasons = consumer.wait_stopped("ingest.raises-a:0")
    assert "cannot do this" in reasons["ingest.raises-a:0"]
    ingest(pipeline, consumer, "ingest.raw-beside", [b"x"] * 100)
    pipeline.assert_exact("ingest.raw-beside")


@pytest.mark.parametrize("name", ["strict", "strictspark"])
def test_bad_record_stops_its_partition_where_asked_for(
    pipeline: Pipeline, consumer: ConsumerProcess, name: str
) -> None:
    topic = f"ingest.{name}-a"
    pipeline.admin.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": pipeline.bootstrap})
    for partition in (0, 1):
        for i, value in enumerate(json_values(0, 100)):
            producer.produce(topic, b"null" if (partition, i) == (0, 30) else value, partition=partition)
    producer.flush(10)
    reasons = consumer.wait_stopped(f"{topic}:0")
    assert "not a JSON object" in reasons[f"{topic}:0"]
    wait_until(lambda: len(pipeline.rows(topic)) == 130, 30, "30 rows before the bad record, 100 of the other one")


def test_aborted_transactions_are_not_in_the_lake(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    """Their offsets are covered all the same: the position ends behind the last marker."""
    for name in ("raw-transactions", "spark-transactions"):
        topic = f"ingest.{name}"
        pipeline.admin.create_topic(topic, 2)
        producer = Producer({"bootstrap.servers": pipeline.bootstrap, "transactional.id": f"t-{topic}"})
        producer.init_transactions(10)
        for round_ in range(6):
            producer.begin_transaction()
            for value in json_values(round_ * 100, 100):
                producer.produce(topic, value)
            producer.flush(30)  # an abort drops what is not sent yet, and then there is nothing for the broker to end
            if round_ % 2:
                producer.abort_transaction(10)
            else:
                producer.commit_transaction(10)
        pipeline.wait_caught_up([topic])
        pipeline.assert_exact(topic, raw="raw" in name)
        assert len(pipeline.rows(topic)) == 300


def test_partitions_added_while_producing(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    topic = "ingest.json-grows"
    ingest(pipeline, consumer, topic, list(json_values(0, 500)))
    create_partitions(pipeline.admin, topic, 7)
    for i in range(5):
        produce(pipeline.bootstrap, topic, json_values(500 + 300 * i, 300))
    pipeline.wait_caught_up([topic])
    pipeline.assert_exact(topic, raw=False)
    assert {row["_partition"] for row in pipeline.rows(topic)} == set(range(7))


def test_group_offsets_follow_the_lake_for_lag_tools(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    """Written after the lake's commit, so never ahead of it; and a rewind by an operator changes nothing."""
    from confluent_kafka import Consumer, TopicPartition

    topic = "ingest.raw-lag"
    ingest(pipeline, consumer, topic, [b"x"] * 500)
    tool = Consumer({"bootstrap.servers": pipeline.bootstrap, "group.id": pipeline.settings.group})
    tps = [TopicPartition(topic, p) for p in range(3)]
    lake = {tp.partition: offset for tp, offset in pipeline.positions([topic]).items()}
    wait_until(lambda: {p.partition: p.offset for p in tool.committed(tps, 5)} == lake, 20, "group offsets")
    tool.commit(offsets=[TopicPartition(topic, p, 0) for p in range(3)], asynchronous=False)
    produce(pipeline.bootstrap, topic, [b"y"] * 500)
    pipeline.wait_caught_up([topic])
    pipeline.assert_exact(topic)
    tool.close()


def test_records_larger_than_a_batch_go_through(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    values: list[bytes | None] = [b"a" * 900_000, b"b" * 10, b"c" * 500_000]
    ingest(pipeline, consumer, "ingest.raw-large", values)
    pipeline.assert_exact("ingest.raw-large")


def test_status_and_audit_at_the_end(pipeline: Pipeline, consumer: ConsumerProcess) -> None:
    ingest(pipeline, consumer, "ingest.raw-status", [b"x"] * 500)
    wait_until(lambda: consumer.status().get("records", 0) >= 500, 10, "the status file counts the records")
    assert json.loads(consumer.status_file.read_text())["partitions"] >= 3
    pipeline.assert_audit_is_clean()
