"""`kgs replace` on a real broker with real consumers: another configuration, one consumer after the other."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kgs_core.adapters.embedded_kafka import EmbeddedKafka
from kgs_core.adapters.known_load import KnownLoad
from kgs_core.config.file import load_settings
from kgs_core.config.fingerprint import config_hash
from kgs_core.control.overview import Overview
from tests.system.group_record import find_problems, load_records
from tests.system.test_control import BUSY, PARTITIONS, SECTIONS, Rig, ended

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, kafka, f"{topic_prefix}load", packing={**SECTIONS["packing"], "spare_consumers": 1})
    try:
        yield rig
    finally:
        rig.clean_up()


def wait_settled(rig: Rig, wanted: str) -> Overview:
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
    config = rig.pipeline.config
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: BUSY):
        with rig.controller() as control:
            before = wait_settled(rig, config_hash(rig.settings))
            assert ended(control) == 0, rig.tail()
        tree = yaml.safe_load(config.read_text())
        tree["consumer"]["batch_bytes"] = 1_234_567
        config.write_text(yaml.safe_dump(tree))
        wanted = config_hash(load_settings(config, {}))
        assert wanted != before.consumers[0].config_hash
        with rig.controller() as control:
            rig.wait(lambda found: found.controller_is_heard, "another controller")
            rig.kgs("replace", "--wait")
            after = wait_settled(rig, wanted)
            old = {line.incarnation for line in before.consumers}
            assert not old & {line.incarnation for line in after.consumers}
            reasons = [change.reason for change in after.changes if change.reason.startswith("replacement")]
            assert len(reasons) >= 3, reasons  # the spare, and each of two readers
            assert ended(control) == 0, rig.tail()
    assert find_problems(rig.settings, load_records(rig.settings), {}) == ()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()
