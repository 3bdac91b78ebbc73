"""What may be moved in an hour, on a real broker: a controller that is killed does not forget what was moved."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.test_control import BUSY, CALM, SECTIONS, Rig, ended
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
BUDGET = 0.3
"""One consumer less costs about 0.2: alone that would be allowed."""


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    packing = {**SECTIONS["packing"], "max_rscore_per_hour": BUDGET}
    rig = Rig(tmp_path, kafka, f"{topic_prefix}load", packing=packing)
    try:
        yield rig
    finally:
        rig.clean_up()


@pytest.mark.chaos
def test_what_overload_has_moved_holds_back_a_better_packing_and_a_kill_changes_nothing(rig: Rig) -> None:
    speed = CALM

    def times_held_back() -> int:
        return rig.log.read_text().count("held back: ")

    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: speed):
        with rig.controller() as control:
            rig.wait_readers(1)
            speed = BUSY
            rig.wait_readers(2)
            rig.wait(lambda found: sum(change.rscore for change in found.changes) > BUDGET, "overload is always cured")
            rig.wait_readers(2)
            speed = CALM
            wait_until(times_held_back, 60, f"a better packing waits: {rig.log}")
            control.kill()
        before = times_held_back()
        with rig.controller() as control:
            wait_until(lambda: times_held_back() > before, 120, f"it waits still: {rig.log}")
            assert len(set(rig.wait_readers(2).current.values())) == 2
            plan = json.loads(rig.kgs("plan", "--json").stdout)
            assert plan["consumers"] == 1
            assert plan["held_back"].startswith("held back: ")
            assert f"of at most {BUDGET} Rscore an hour" in plan["held_back"]
            assert ended(control) == 0, rig.tail()
