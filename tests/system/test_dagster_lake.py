"""Dagster's look at a real lake: what the sensor records, and the jobs that audit and maintain it."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka.admin import KafkaAdmin
from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.automation import lake_sensor
from kgs_dagster.definitions import build_defs
from kgs_dagster.settings import GroupConfig
from tests.system.small_sink import GOOD, SmallSink, send, settings_for


class Rig:
    """A topic with a table of three files, and an instance of Dagster."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, topic: str, prefix: str, instance: dg.DagsterInstance):
        self.kafka = kafka
        self.topic = topic
        self.instance = instance
        self.sink = SmallSink(settings_for(kafka, folder / "lake", prefix), topic)
        self.group = GroupConfig(self.sink.settings, folder / "kgs.yaml", "")
        for _ in range(3):
            self.ingest(2)

    def ingest(self, count: int) -> None:
        send(self.kafka, self.topic, *[GOOD] * count)
        self.sink.ingest()

    def execute(self, job: str) -> dg.ExecuteInProcessResult:
        defs = build_defs(groups=[self.group])
        return defs.resolve_job_def(job).execute_in_process(instance=self.instance, raise_on_error=False)


@pytest.fixture
def rig(kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    topic = f"{topic_prefix}lake"
    admin.create_topic(topic, 1)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Rig(tmp_path, kafka, topic, topic_prefix, instance)


def test_the_sensor_records_what_the_lake_and_kafka_say(rig: Rig) -> None:
    sensor = lake_sensor(rig.group)
    table = lake_layout(rig.group)[0].table

    def tick(cursor: str | None) -> tuple[list[tuple[str, dict[str, object]]], str | None]:
        found = sensor(dg.build_sensor_context(instance=rig.instance, cursor=cursor))
        assert isinstance(found, dg.SensorResult)
        names = ("rows", "dead_letters", "files", "lag")
        of_table = [e for e in found.asset_events if e.asset_key == table]
        return [(type(e).__name__, {n: e.metadata[n].value for n in names}) for e in of_table], found.cursor

    first, cursor = tick(None)
    assert first == [("AssetMaterialization", {"rows": 6, "dead_letters": 0, "files": 3, "lag": 0})]
    send(rig.kafka, rig.topic, GOOD)
    second, cursor = tick(cursor)
    assert second == [("AssetObservation", {"rows": 6, "dead_letters": 0, "files": 3, "lag": 1})]
    rig.ingest(1)
    third, cursor = tick(cursor)
    assert third == [("AssetMaterialization", {"rows": 8, "dead_letters": 0, "files": 4, "lag": 0})]
    assert tick(cursor)[0] == []


def test_the_audit_is_a_check_of_the_table(rig: Rig) -> None:
    (check,) = rig.execute("lake_audit_job").get_asset_check_evaluations()
    assert check.passed
    assert (check.metadata["rows"].value, check.metadata["doubled"].value) == (6, 0)

    rig.sink.commit_blindly(rig.sink.read(start={0: 4}))
    (check,) = rig.execute("lake_audit_job").get_asset_check_evaluations()
    assert not check.passed
    assert check.metadata["doubled"].value == 2
    assert "doubled 2: 4-5" in str(check.metadata["findings"].value)


def test_maintenance_joins_the_files_of_the_table(rig: Rig) -> None:
    assert rig.execute("lake_maintenance_job").success
    assert len(rig.sink.handle().file_uris()) == 1
    (check,) = rig.execute("lake_audit_job").get_asset_check_evaluations()
    assert check.passed
