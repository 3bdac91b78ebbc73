"""`kgs plan --group` beside real consumers of both of Kafka's protocols; only a broker has such groups."""

import json
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from confluent_kafka import Consumer

from bench.load_shapes import KnownLoad
from kgs_core.cli.main import cli
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.embedded_kafka.jars import KAFKA_VERSION
from kgs_core.errors import TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.committed_offsets import GroupOffsets
from kgs_core.model import TopicId, TopicPartition
from kgs_core.planning.group_load import FLAT_OUT_S
from tests.system.pipeline import KGS
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(25), pytest.mark.timeout(240)]
WINDOW_S = 12.0  # six looks
PARTITIONS, TOTAL = 4, 300_000.0
SLOW_S = 0.1
PROTOCOLS = ("classic", "consumer") if KAFKA_VERSION >= "4" else ("classic",)
"""Kafka 3 has no group.protocol=consumer (KIP-848)."""


class Member(threading.Thread):
    """A consumer of an application, slow at the records of partition 0."""

    def __init__(self, bootstrap: str, group: str, topic: str, number: int, protocol: str) -> None:
        super().__init__(name=f"{group}-{number}", daemon=True)
        self._client = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": f"pod-{number}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
        }
        self._topic = topic
        self.stop = threading.Event()

    def run(self) -> None:
        consumer = Consumer(self._client)
        consumer.subscribe([self._topic])
        while not self.stop.is_set():
            record = consumer.poll(0.1)
            if record is not None and record.partition() == 0:
                self.stop.wait(SLOW_S)
        consumer.close()


@contextmanager
def members(many: int, bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[None]:
    running = [Member(bootstrap, group, topic, number, protocol) for number in range(many)]
    for one in running:
        one.start()
    try:
        yield
    finally:
        for one in running:
            one.stop.set()
        for one in running:
            one.join(30)


@pytest.fixture
def config(kafka: EmbeddedKafka, tmp_path: Path) -> str:
    tree = {
        "group": "none",
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "lake": {"root": "lake"},
        "topics": [{"pattern": "unfinished"}],
        "monitor": {"window_s": WINDOW_S},
    }
    (tmp_path / "kgs.yaml").write_text(yaml.safe_dump(tree))
    return str(tmp_path / "kgs.yaml")


def _committed(admin: KafkaAdmin, group: str) -> int:
    with suppress(TransientError):  # on a broker without any group
        return len(admin.committed_offsets(group))
    return 0


def plan(config: str, group: str) -> Result:
    return CliRunner().invoke(cli, ["plan", "--config", config, "--group", group, "--json"])


def plans(config: str, groups: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Of several groups at once, since each looks at its group for a window."""
    command = [KGS, "plan", "--config", config, "--json", "--group"]
    running = {each: subprocess.Popen([*command, each], stdout=subprocess.PIPE, text=True) for each in groups}
    said = {each: process.communicate(timeout=200)[0] for each, process in running.items()}
    assert {process.returncode for process in running.values()} == {0}
    return {each: json.loads(text) for each, text in said.items()}


def test_who_is_behind_and_who_reads_nothing_is_seen(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, config: str
) -> None:
    topic, groups = f"{topic_prefix}pay", {f"{topic_prefix}{protocol}": protocol for protocol in PROTOCOLS}
    admin.create_topic(topic, PARTITIONS)
    topics = admin.list_topics()
    with ExitStack() as running:
        running.enter_context(KnownLoad(kafka.bootstrap_servers, topic, lambda _: TOTAL))
        for group, protocol in groups.items():
            running.enter_context(members(PARTITIONS + 2, kafka.bootstrap_servers, group, topic, protocol))
        for group in groups:
            wait_until(lambda one=group: _committed(admin, one) == PARTITIONS, 60, "all is read")  # type: ignore[misc]
        time.sleep(FLAT_OUT_S / 2)  # it falls behind six times as fast as it reads
        found = plans(config, groups)
        assert [len(admin.describe_group(each).members) for each in groups] == [PARTITIONS + 2] * len(groups)
    for each in found.values():
        assert_seen(each)
    assert admin.list_topics() == topics
    # Its members are gone, its offsets are not
    for later in plans(config, groups).values():
        assert (later["group"]["members"], len(later["group"]["without_member"])) == ([], PARTITIONS)


def assert_seen(found: dict[str, Any]) -> None:
    """One member is behind, and two read nothing."""
    seen = found["group"]
    readers = [one for one in seen["members"] if one["partitions"]]
    assert (len(seen["members"]), len(readers), seen["without_member"]) == (PARTITIONS + 2, PARTITIONS, [])
    (slow,) = [one for one in readers if one["is_flat_out"]]
    for one in readers:
        assert one["written_bytes_per_s"] == pytest.approx(TOTAL / PARTITIONS, rel=0.5)  # the producer has just begun
        share = one["read_bytes_per_s"] / one["written_bytes_per_s"]
        assert share < 0.4 if one is slow else share > 0.4
    learnt = found["learnt"]
    assert (learnt["source"], learnt["flat_out_bytes_per_s"]) == ("learnt", slow["read_bytes_per_s"])
    idle = [one["name"] for one in seen["members"] if not one["partitions"]]
    assert f"without a partition: {', '.join(idle)}" in seen["advice"]
    assert found["consumers"] > PARTITIONS - 1, "each partition is more than the slow one reads"
    assert seen["advice"][0].startswith(f"{PARTITIONS + 2} members where {found['consumers']} would do")


def test_what_no_plan_can_be_made_for_is_refused_at_once(
    kafka: EmbeddedKafka, admin: KafkaAdmin, topic_prefix: str, config: str
) -> None:
    topic, ours = f"{topic_prefix}t", f"{topic_prefix}ours"
    admin.create_topic(topic, 1)
    refused = plan(config, f"{topic_prefix}nobody")
    assert (refused.exit_code, "no consumer group of this name" in refused.stderr) == (1, True), refused.stderr
    offsets = GroupOffsets({"bootstrap.servers": kafka.bootstrap_servers}, ours)
    offsets.report(TopicId("x" * 22), "bronze/t", {TopicPartition(topic, 0): 0})
    offsets.close()
    refused = plan(config, ours)
    assert (refused.exit_code, "kgs reads by it: leave --group away" in refused.stderr) == (1, True), refused.stderr
