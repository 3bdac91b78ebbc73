"""A plan that waits for a person, with a real broker, `kgs control` and real consumers: only there do its record, the
commands and the offsets by which an approval names a plan meet."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.adapters.embedded_kafka.cluster import EmbeddedKafka
from tests.system.test_control import BUSY, CALM, SECTIONS, Rig, ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REFUSED = 3


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    packing = {**SECTIONS["packing"], "apply": "approve"}
    rig = Rig(tmp_path, kafka, f"{topic_prefix}load", packing=packing)
    try:
        yield rig
    finally:
        rig.clean_up()


def test_what_overload_forces_is_done_at_once_and_a_better_packing_waits_for_a_person(rig: Rig) -> None:
    speed = CALM
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: speed):
        with rig.controller() as control:
            rig.wait_readers(1)
            speed = BUSY
            rig.wait_readers(2)
            speed = CALM
            waiting = rig.wait(lambda found: found.plan is not None and found.plan.consumers_after == 1, "a plan waits")
            assert waiting.plan is not None
            found = waiting.plan.plan_id
            control.kill()
        with rig.controller() as control:
            assert json.loads(rig.kgs("status", "--json").stdout)["waiting_plan"]["id"] == found, "it outlives one"
            assert found in rig.kgs("status").stdout
            assert found in rig.kgs("plan", "--show", found).stdout
            refused = rig.run("approve", "0123456789ab")
            assert (refused.returncode, refused.stderr.count("\n")) == (REFUSED, 1), refused.stderr
            assert len(set(rig.look().current.values())) == 2, "nobody has approved it yet"
            assert "are to be moved" in (done := rig.kgs("approve", found, "--wait").stdout), done
            assert "done: carried out" in done
            assert len(set(rig.look().current.values())) == 1
            assert "approved and carried out before" in rig.kgs("approve", found).stdout
            assert ended(control) == 0, rig.tail()
