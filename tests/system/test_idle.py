"""A group with nothing to read ends its consumers, and the next record is read: `kgs control`, a real broker."""

import time
from pathlib import Path

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.pipeline import json_values, produce
from tests.system.rig import SECTIONS, Rig, ended
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(40), pytest.mark.timeout(300)]
SPARK = [pytest.mark.soak, pytest.mark.spark]
AGAIN = 3
"""Sleeps with Spark, for the figures in docs/operations.md: `pytest tests/system/test_idle.py -m soak -s`."""


def is_asleep(rig: Rig, spares: int) -> bool:
    return len(rig.consumers()) == spares and rig.look().idle is not None


@pytest.mark.parametrize(
    ("spares", "sleeps"),
    [pytest.param(0, 1, id="local"), pytest.param(0, AGAIN, marks=SPARK), pytest.param(1, AGAIN, marks=SPARK)],
)
def test_a_group_sleeps_while_nothing_is_written_and_the_next_record_is_read(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path, spares: int, sleeps: int
) -> None:
    packing = {**SECTIONS["packing"], "spare_consumers": spares, "idle_after_s": 2.0}
    with Rig(tmp_path, kafka, f"{topic_prefix}idle", packing=packing) as rig:
        produce(rig.pipeline.bootstrap, rig.topic, json_values(0, 100))
        with rig.controller() as control:
            rig.pipeline.wait_caught_up([rig.topic])
            for again in range(sleeps):
                wait_until(lambda: is_asleep(rig, spares), 90, f"it sleeps: {rig.tail()}")
                assert "nothing to read" in rig.kgs("status").stdout
                produce(rig.pipeline.bootstrap, rig.topic, json_values(100 + again, 1))
                began = time.monotonic()
                wait_until(lambda: rig.pipeline.caught_up([rig.topic]), 60, f"it is read: {rig.tail()}")
                print(f"spare_consumers {spares}: in the table after {time.monotonic() - began:.1f} s")
            assert ended(control) == 0, rig.tail()
        rig.pipeline.assert_exact(rig.topic)
        rig.pipeline.assert_audit_is_clean()
