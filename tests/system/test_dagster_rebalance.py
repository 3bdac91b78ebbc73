"""Rebalance runs and the load sensor on a real broker: killed at every step, fenced, and told of outages."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from kgs_core.config.file import load_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import Target
from kgs_core.group.topics.topics import create_topics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import TopicPartition
from kgs_core.monitor.kafka.partition_sizes import clock
from kgs_core.monitor.kafka.topic import Publisher, create_topic
from kgs_core.monitor.speeds import Measure, Measurement, PartitionSpeed, Reading, Verdict
from kgs_core.runtime.group_status import load_group
from kgs_dagster.definitions import build_defs
from kgs_dagster.jobs.rebalance import TARGET
from kgs_dagster.run_process import process_of
from kgs_dagster.sensors.long_poll import Timing
from kgs_dagster.sensors.partition_load import partition_load_sensor
from kgs_dagster.settings import name_groups
from tests.failpoints import crash_at
from tests.system.members import MemberThread, members
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(10), pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
SECTIONS = {
    "monitor": {"window_s": 6.0},
    "packing": {
        "packing_capacity_bytes_per_s": 100.0,
        "consumer_capacity_bytes_per_s": 120.0,
        "spare_consumers": 0,
    },
    "membership": {"suspect_after_s": 30.0},  # a process takes longer than 5 s to begin on a busy machine
}
CALM = (50.0, 50.0, 50.0, 50.0)
BUSY = (90.0, 90.0, 50.0, 50.0)


class Rig:
    """A group of its own on the shared broker, and an instance of Dagster, on disk unless `storage` says otherwise."""

    def __init__(self, folder: Path, bootstrap: str, topic: str, storage: str = "") -> None:
        self.folder = folder
        self.topic = topic
        tree = {
            "group": f"group-{topic}"[:100],
            "kafka": {"bootstrap_servers": bootstrap},
            "lake": {"root": "lake"},
            "topics": [{"topic": topic}],
            **SECTIONS,
        }
        self.config = folder / "kgs.yaml"
        self.config.write_text(yaml.safe_dump(tree))
        self.settings = load_settings(self.config, {})
        (self.group,) = name_groups([(self.settings, self.config)])
        self.admin = KafkaAdmin(admin_client(self.settings))
        create_topic(self.settings, self.admin)
        self.publisher = Publisher(self.settings)
        self.home = folder / "dagster_home"
        self.home.mkdir()
        (self.home / "dagster.yaml").write_text(f"telemetry: {{enabled: false}}\n{storage}")
        self.instance = dg.DagsterInstance.from_config(str(self.home))
        self.defs = build_defs(groups=[self.group])

    def close(self) -> None:
        self.publisher.close()
        self.instance.dispose()

    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, number) for number in range(4)]

    def publish(self, speeds: tuple[float, ...], age_s: float = 0.0) -> int:
        """A measurement as the monitor makes it; its offset."""
        reading = Reading(
            time.monotonic() - age_s, time.time_ns() // 1_000_000 - round(age_s * 1000), clock(), Measure.LOG_DIRS, {}
        )
        measured = {
            tp: PartitionSpeed(Verdict.MEASURED, speed) for tp, speed in zip(self.partitions(), speeds, strict=True)
        }
        self.publisher.send(Measurement(reading, measured))
        offset = self.publisher.settle(20)
        assert offset is not None
        return offset

    def run(self, **config: Any) -> dg.ExecuteInProcessResult:
        """A run in this process."""
        return self.defs.resolve_job_def("rebalance_job").execute_in_process(
            run_config={"resources": {"rebalance": {"config": config}}}, instance=self.instance, raise_on_error=False
        )

    def start(self, environ: Mapping[str, str], **config: Any) -> "subprocess.Popen[str]":
        """A run in a process of its own; without a configuration a tick of the load sensor."""
        asked = json.dumps(config) if config else "tick"
        return subprocess.Popen(
            [sys.executable, "-m", "tests.system.rebalance_worker", str(self.config), asked],
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(self.home), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def tick(self) -> dg.SensorResult:
        """A tick of the load sensor in this process."""
        sensor = partition_load_sensor(self.group, timing=Timing(length_s=15.0))
        return sensor.evaluate_tick(dg.build_sensor_context(instance=self.instance, definitions=self.defs))

    def target(self) -> Target | None:
        newest = load_group(self.settings)[2].target
        return newest.message if newest is not None else None


def read_by(started: "list[MemberThread] | tuple[MemberThread, ...]") -> int:
    """How many members read something; everything must be read by one."""
    owned = [tp for member in started for tp in member.owned]
    assert len(owned) == len(set(owned)) == 4, owned
    return sum(bool(member.owned) for member in started)


def failure(result: dg.ExecuteInProcessResult) -> tuple[str, str]:
    (event,) = [event for event in result.all_events if event.is_step_failure]
    said = event.step_failure_data.user_failure_data
    assert said is not None
    return str(event.step_key).rsplit("__", 1)[-1], str(said.description)


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, kafka.bootstrap_servers, f"{topic_prefix}load")
    try:
        yield rig
    finally:
        rig.close()


@pytest.fixture
def three(rig: Rig) -> Iterator[list[MemberThread]]:
    """Two members read two partitions each, and a third has just joined: kept waiting, it would be told to end."""
    create_topics(rig.settings, rig.admin)
    with members(rig.settings, 1, 2) as two:
        assert rig.run(measurement_offset=rig.publish(CALM)).success
        with members(rig.settings, 3) as third:
            yield [*two, *third]


def test_a_change_is_carried_out_through_real_topics(rig: Rig, three: list[MemberThread]) -> None:
    offset = rig.publish(BUSY)
    result = rig.run(measurement_offset=offset, reason="consumer above consumer_capacity: 1")
    assert result.success
    assert read_by(three) == 3
    target = rig.target()
    assert target is not None
    assert (target.measurement_offset, target.rscore) == (offset, 0.9)
    recorded = {
        event.asset_key.path[-1]: {name: value.value for name, value in event.materialization.metadata.items()}
        for event in result.get_asset_materialization_events()
        if event.asset_key is not None
    }
    assert recorded["handover"]["outcome"] == "converged"
    assert recorded["handover"]["moved_partitions"] == 1
    assert 0 < recorded["handover"]["unread_s"] < 10
    assert recorded["rscore"]["rscore"] == 0.9
    evaluations = result.get_asset_check_evaluations()
    assert {evaluation.passed for evaluation in evaluations} == {True}
    assert len(evaluations) == 6


def test_where_a_measurement_is_old_or_gone_the_newest_one_counts(rig: Rig, three: list[MemberThread]) -> None:
    """With the real topic, for it is there that the newest one is looked for."""
    old, newest = rig.publish(CALM, 60.0), rig.publish(BUSY)
    assert rig.run(measurement_offset=old).success
    target = rig.target()
    assert target is not None
    assert target.measurement_offset == newest
    assert read_by(three) == 3
    assert rig.run(measurement_offset=77).success


POINTS = ("in-transaction", "after-write", "after-write:2")
"""What each leaves in Kafka's topics differs; tests/dagster/test_rebalance_failures.py has every step, in memory."""


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
def test_the_next_run_goes_on_wherever_one_was_killed(
    rig: Rig, three: list[MemberThread], tmp_path: Path, point: str
) -> None:
    process = rig.start(crash_at(point, tmp_path), measurement_offset=rig.publish(BUSY))
    try:
        assert process.wait(120) == -signal.SIGKILL, process.communicate()[0]
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / point.partition(":")[0]).exists()
    (run,) = rig.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    assert process_of(run.tags) is not None
    result = rig.run(measurement_offset=rig.publish(BUSY))
    assert result.success
    assert read_by(three) == 3
    target = rig.target()
    assert target is not None
    assert [change.moved for change in target.history] == [0, 1], "the change was made once"


@pytest.mark.chaos
def test_a_change_whose_tick_was_killed_is_made_once_and_recorded(rig: Rig, tmp_path: Path) -> None:
    """Behind its Target, whose consumers and record nobody has asked for: a process, since it must die."""
    rig.admin.create_topic(rig.topic, 4)
    process = rig.start(crash_at("after-write", tmp_path))
    try:
        assert process.wait(120) == -signal.SIGKILL, process.communicate()[0]
    finally:
        process.kill()
        process.communicate()
    consumer, record = rig.tick().run_requests
    assert (consumer.tags["kgs/consumer"], record.tags[TARGET].split("-")[:2]) == ("1", ["written", "0"])
    target = rig.target()
    assert target is not None
    assert len(target.history) == 1


@pytest.mark.chaos
def test_of_two_runs_at_once_the_newer_one_counts(rig: Rig) -> None:
    """The first one waits for a consumer that nobody starts; the second one has other speeds."""
    create_topics(rig.settings, rig.admin)
    with members(rig.settings, 1, 2) as started:
        assert rig.run(measurement_offset=rig.publish(CALM)).success
        first = rig.start({}, measurement_offset=rig.publish(BUSY))
        try:
            wait_until(lambda: (found := rig.target()) is not None and len(found.history) == 2, 60, "it has written")
            assert first.poll() is None, "it waits"
            assert rig.run(measurement_offset=rig.publish(CALM)).success
            said, _ = first.communicate(timeout=60)
        finally:
            first.kill()
        assert first.returncode == 1
        assert "handover" in said
        assert re.search(r"a newer controller has (written|taken over): this one has ended", said)
        assert read_by(list(started)) == 2


def test_a_tick_makes_the_group_and_whoever_joins_reads_before_any_run_which_records_it(rig: Rig) -> None:
    """With the real monitor: topics, window, publishing and all; the tick itself fences, packs and writes."""
    rig.admin.create_topic(rig.topic, 4)
    consumer, record = rig.tick().run_requests
    assert consumer.tags["kgs/consumer"] == "1"
    assert record.run_key.startswith(f"{rig.settings.group}/written-0-")
    with members(rig.settings, 1) as started:
        assert [each.run_key for each in rig.tick().run_requests] == [record.run_key], "nothing has recorded it yet"
        assert read_by(list(started)) == 1
        assert rig.run(**record.run_config["resources"]["rebalance"]["config"]).success
        result = rig.tick()
    assert result.run_requests == []
    assert result.skip_message is not None
    assert "1 consumer read 4 of 4 partitions" in result.skip_message
    assert int(result.cursor or "") > 0
