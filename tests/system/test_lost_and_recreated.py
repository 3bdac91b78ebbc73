"""What the log has lost, topics that are not what they were, a broker that goes away; and tables that are refused."""

import subprocess
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.model import TopicPartition
from tests.system.pipeline import JSON_FIELDS, KGS, Pipeline, json_values, produce
from tests.topics import delete_records, delete_topic
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.slow(30)
@pytest.mark.parametrize("processor", ["arrow", pytest.param("dataframe", marks=pytest.mark.spark)])
def test_offsets_deleted_before_being_read_stop_their_partition_until_the_loss_is_accepted(
    processor: str, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}lost-{processor}"
    rule = {"topic": topic, "format": "json", "schema": JSON_FIELDS}
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [rule])
    pipeline.admin.create_topic(topic, 3)
    produce(kafka.bootstrap_servers, topic, json_values(0, 600))
    with pipeline.consumer(KGS_BATCH_RUNNER="local") as consumer:
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    if processor == "dataframe":
        pipeline.configure([rule | {"transform": "hooks:spark_same"}])
    before = pipeline.positions([topic])[TopicPartition(topic, 1)]
    produce(kafka.bootstrap_servers, topic, json_values(600, 600))
    first = pipeline.admin.offsets([TopicPartition(topic, 1)], "latest")[TopicPartition(topic, 1)] - 20
    delete_records(pipeline.admin, {TopicPartition(topic, 1): first})
    with pipeline.consumer() as consumer:
        reason = consumer.wait_stopped(f"{topic}:1")[f"{topic}:1"]
        assert f"offsets {before} to {first - 1} were deleted before being read" in reason
        ends = pipeline.admin.offsets([TopicPartition(topic, p) for p in (0, 2)], "latest")
        wait_until(lambda: ends.items() <= pipeline.positions([topic]).items(), 30, "the others go on")
        accepted = pipeline.kgs("accept-loss", f"{topic}:1={before}-{first}", "--yes")
        assert accepted.returncode == 0, accepted.stderr
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    assert len(pipeline.rows(topic)) == 1200 - (first - int(before or 0))
    pipeline.assert_audit_is_clean()


def test_topic_made_again_under_its_name_is_stopped_with_both_ids_until_accepted(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    topic, beside = f"{topic_prefix}again", f"{topic_prefix}beside"
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": topic}, {"topic": beside}])
    for name in (topic, beside):
        pipeline.admin.create_topic(name, 1)
        produce(kafka.bootstrap_servers, name, [b"old"] * 50)
    old = pipeline.admin.topic_ids([topic])[topic]
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up([topic, beside])
        delete_topic(pipeline.admin, topic)
        pipeline.admin.create_topic(topic, 1)
        new = pipeline.admin.topic_ids([topic])[topic]
        produce(kafka.bootstrap_servers, topic, [b"new"] * 200)
        produce(kafka.bootstrap_servers, beside, [b"more"] * 50)
        reason = consumer.wait_stopped(f"{topic}:0")[f"{topic}:0"]
        assert str(old) in reason
        pipeline.wait_caught_up([beside])
        consumer.terminate()
    assert len(pipeline.rows(topic)) == 50
    with pipeline.consumer(2) as refused:  # also when all of that happened while nobody was looking
        wait_until(lambda: refused.process.poll() is not None, 60, f"refused: {refused.tail()}")
        assert refused.process.returncode == 3
        assert f"error: topic {topic}" in refused.tail()
        assert str(old) in refused.tail()
        assert str(new) in refused.tail()
    assert pipeline.kgs("accept-topic", topic, "--yes").returncode == 0
    with pipeline.consumer(3) as consumer:
        pipeline.wait_caught_up([topic, beside])
        consumer.terminate()
    assert len(pipeline.rows(topic)) == 250


def test_table_whose_properties_break_the_guarantee_is_refused_by_name(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}refused"
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": topic}])
    pipeline.admin.create_topic(topic, 1)
    produce(kafka.bootstrap_servers, topic, [b"x"] * 10)
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up([topic])
        consumer.terminate()
    table = DeltaTable(str(pipeline.lake / topic))
    table.alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    with pipeline.consumer(2) as refused:
        wait_until(lambda: refused.process.poll() is not None, 60, f"refused: {refused.tail()}")
        assert refused.process.returncode == 3
        assert f"error: table {topic}: property delta.setTransactionRetentionDuration" in refused.tail()


def test_errors_before_the_start_are_one_line(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Those that a person must mend; a broker that is away is waited for: see test_start_of_a_consumer.py."""
    config, taken = tmp_path / "kgs.yaml", tmp_path / "lake"
    taken.write_text("a file where the lake is to be")
    servers = kafka.bootstrap_servers
    config.write_text(
        f"group: g\nkafka: {{bootstrap_servers: '{servers}'}}\nlake: {{root: lake/here}}\ntopics: [{{topic: a}}]\n"
    )
    command = [KGS, "consume", "--config", str(config), "--id", "1", "--share", "1/1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert str(taken) in line
    assert "fix lake.root" in line
    assert "Traceback" not in done.stderr
