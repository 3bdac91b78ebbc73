"""`kgs plan --apply` with a real broker, `kgs control` and real consumers: only there do command and records meet."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.rig import BUSY, CALM, SECTIONS, Rig, ended

pytestmark = [pytest.mark.slow(40), pytest.mark.timeout(900)]
REFUSED = 3
ONE_READS = SECTIONS["packing"]["packing_capacity_bytes_per_s"]


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    packing = {**SECTIONS["packing"], "apply": "forced_only"}
    with Rig(tmp_path, kafka, f"{topic_prefix}load", packing=packing) as rig:
        yield rig


def test_what_overload_forces_is_done_at_once_and_a_better_packing_when_a_person_asks(rig: Rig) -> None:
    speed = CALM
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: speed):
        with rig.controller() as control:
            rig.wait_readers(1)
            speed = BUSY
            rig.wait_readers(2)
            speed = CALM
            rig.wait(lambda found: sum(found.facts.speeds.values()) < ONE_READS, "one consumer is enough")
            assert "wait for `kgs plan --apply`" in rig.kgs("status").stdout
            rig.kgs("pause", "--wait")
            refused = rig.pipeline.kgs("plan", "--apply", "--yes")
            assert (refused.returncode, refused.stderr.splitlines()[-1].count("kgs resume")) == (REFUSED, 1)
            rig.kgs("resume", "--wait")
            assert len(set(rig.look().current.values())) == 2, "nobody has asked yet"
            control.kill()
        rig.kgs("plan", "--apply", "--yes")
        with rig.controller() as control:
            rig.wait(lambda found: found.request is None and found.is_converged, "the next controller carries it out")
            assert len(set(rig.look().current.values())) == 1
            asked = json.loads(rig.kgs("plan", "--apply", "--yes", "--wait", "--json").stdout)
            assert asked["applied"] == {"moved": 0}
            assert ended(control) == 0, rig.tail()
