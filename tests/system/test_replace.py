"""`kgs replace` on a real broker with real consumers: another configuration, one consumer after the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.config.settings import config_hash
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus
from tests.system.group_record import find_problems, load_records
from tests.system.pipeline import json_values, produce
from tests.system.rig import BUSY, PARTITIONS, SECTIONS, Rig, ended

pytestmark = [pytest.mark.slow(40), pytest.mark.timeout(1500)]


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    with Rig(tmp_path, kafka, f"{topic_prefix}load", packing={**SECTIONS["packing"], "spare_consumers": 1}) as rig:
        yield rig


def wait_settled(rig: Rig, wanted: str) -> GroupStatus:
    """Two readers and a spare, all of this configuration, nobody else."""
    return rig.wait(
        lambda found: (
            found.is_converged
            and len(found.current) == PARTITIONS
            and len(set(found.current.values())) == 2
            and [line.config_hash for line in found.consumers] == [wanted] * 3
        ),
        "two readers and a spare",
    )


def test_consumers_of_another_configuration_give_way_one_after_the_other(rig: Rig) -> None:
    """The spare first, then by way of it each reader; every partition changes hands in order, and nothing is lost."""
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: BUSY):
        with rig.controller() as control:
            before = wait_settled(rig, config_hash(rig.settings))
            assert ended(control) == 0, rig.tail()
        wanted = config_hash(
            rig.pipeline.add(consumer={"wait_time_s": 0.1, "topics_refresh_s": 0.5, "batch_bytes": 1_234_567})
        )
        assert wanted != before.consumers[0].config_hash
        with rig.controller() as control:
            rig.wait(lambda found: found.controller_is_heard, "another controller")
            rig.kgs("replace", "--wait")
            after = wait_settled(rig, wanted)
            old = {line.incarnation for line in before.consumers}
            assert not old & {line.incarnation for line in after.consumers}
            reasons = [change.reason for change in after.changes if change.reason.startswith("replacement")]
            assert len(reasons) >= 3, after.changes  # the spare, and each of two readers
            assert ended(control) == 0, rig.tail()
    assert find_problems(rig.settings, load_records(rig.settings), {}) == ()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()


class ThreeTopics:
    """A rig with two more topics of one partition, and two sets of rules for it."""

    def __init__(self, rig: Rig, prefix: str) -> None:
        self.rig = rig
        self.topics = [rig.topic, f"{prefix}second", f"{prefix}third"]
        for topic in self.topics[1:]:
            rig.pipeline.admin.create_topic(topic, 1)
        first, *others = ({"topic": topic} for topic in self.topics)
        self.good = [first, *others]
        self.bad = [first, *({**rule, "transform_arrow": "no:hook"} for rule in others)]
        self.write(self.good)

    def write(self, rules: list[dict[str, Any]]) -> None:
        """The configuration from now on."""
        self.rig.close()
        self.rig.settings = self.rig.pipeline.add(topics=rules)

    def feed(self) -> None:
        """Records for each topic, and all of them in the lake."""
        for topic in self.topics:
            produce(self.rig.pipeline.bootstrap, topic, json_values(0, 200))
        self.rig.pipeline.wait_caught_up(self.topics)

    def wait_read(self) -> tuple[ConsumerRow, ConsumerRow]:
        """One reader of everything, and a spare; the reader first."""
        found = self.rig.wait(
            lambda found: found.is_converged and len(found.current) == PARTITIONS + 2 and len(found.consumers) == 2,
            "one reader and a spare",
        )
        reader, spare = sorted(found.consumers, key=lambda line: not line.partitions)
        assert len(reader.partitions) == PARTITIONS + 2
        assert reader.stopped == {}
        return reader, spare


def test_a_configuration_that_cannot_open_two_of_three_topics_takes_nothing_from_anybody(
    rig: Rig, topic_prefix: str
) -> None:
    """The spare says what it cannot open, and the reader reads on; the former configuration takes the spare back.

    With real consumers: what a configuration can open only a process that has it finds out, with a lake and Spark.
    """
    group = ThreeTopics(rig, topic_prefix)
    with rig.controller() as control:
        before, _ = group.wait_read()
        group.feed()
        assert ended(control) == 0, rig.tail()
    group.write(group.bad)
    with rig.controller() as control:
        rig.wait(lambda found: found.controller_is_heard, "another controller")
        refused = rig.pipeline.kgs("replace", "--wait", "--timeout", "280")
        said = refused.stderr.splitlines()[-1]
        assert (refused.returncode, "which it cannot" in said, "no:hook" in said) == (1, True, True), rig.tail() + said
        assert f"{group.topics[1]}:0, {group.topics[2]}:0" in said
        held, _ = group.wait_read()
        assert held.incarnation == before.incarnation
        group.feed()
        assert "! the replacement has stopped: it waits for spare" in rig.kgs("status").stdout
        group.write(group.good)
        rig.kgs("replace", "--wait", "--timeout", "200")  # less than a spare that was started in vain has to wait
        after, spare = group.wait_read()
        assert (after.incarnation, after.config_hash) == (before.incarnation, spare.config_hash)
        assert ended(control) == 0, rig.tail()
    assert find_problems(rig.settings, load_records(rig.settings), {}) == ()
    for topic in group.topics:
        rig.pipeline.assert_exact(topic)
