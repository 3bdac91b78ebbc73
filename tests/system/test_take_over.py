"""A group of version 0.1 is taken over by this one, with its consumers, topics and tables: `kgs replace`.

The former version is a wheel of the commit that was released, in an environment of its own.
"""

import os
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core import __version__
from kgs_core.config.settings import config_hash
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.pipeline import json_values, produce
from tests.system.rig import CALM, PARTITIONS, SECTIONS, Rig, ended
from tests.wheel import RELEASED, build_wheel, environ, install

pytestmark = [pytest.mark.slow(40), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`kgs` of version 0.1."""
    folder, room = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("released")
    install(build_wheel(folder, RELEASED), room)
    return room / "venv/bin/kgs"


def test_a_group_of_the_former_version_is_replaced_one_by_one(
    released: Path, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """Consumers of 0.1 read on under a controller of this version, until each has given way to one of it."""
    topic = f"{topic_prefix}load"
    packing = {**SECTIONS["packing"], "spare_consumers": 1}
    known = {"packing": packing, "monitor": {"window_s": 12.0}, "topics": [{"topic": topic}]}  # to 0.1
    former = {**environ(), "KGS_BATCH_RUNNER": os.environ["KGS_BATCH_RUNNER"]}
    with Rig(tmp_path, kafka, topic, **known) as rig:
        with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: CALM):
            with rig.controller(kgs=str(released), outer=former) as control:
                before = rig.wait(lambda found: found.is_converged and len(found.consumers) == 2, "one and a spare")
                assert {line.version for line in before.consumers} == {"0.1.0"}
                assert ended(control) == 0, rig.tail()
            produce(rig.pipeline.bootstrap, rig.topic, json_values(0, 1000))
            with rig.controller() as control:
                rig.wait(lambda found: found.controller_is_heard, "a controller of this version")
                assert {line.version for line in rig.look().consumers} == {"0.1.0"}
                rig.kgs("replace", "--wait")
                after = rig.wait(lambda found: found.is_converged and len(found.current) == PARTITIONS, "taken over")
                assert {line.version for line in after.consumers} == {__version__}
                assert {line.config_hash for line in after.consumers} == {config_hash(rig.settings)}
                assert ended(control) == 0, rig.tail()
        rig.pipeline.wait_caught_up([rig.topic])
        rig.pipeline.assert_exact(rig.topic)
        rig.pipeline.assert_audit_is_clean()
