"""A group of version 0.1 is taken over by this one, with its consumers, topics and tables: `kgs replace`.

The former version is a wheel of the commit that was released, in an environment of its own.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.load_shapes import KnownLoad
from kgs_core import __version__
from kgs_core.config.settings import config_hash
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.pipeline import json_values, produce
from tests.system.test_control import CALM, PARTITIONS, SECTIONS, Rig, ended
from tests.wheel import RELEASED, build_wheel, environ, install

pytestmark = [pytest.mark.slow(40), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`kgs` of version 0.1."""
    folder, room = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("released")
    install(build_wheel(folder, RELEASED), room)
    return room / "venv/bin/kgs"


@contextmanager
def controller(kgs: Path | str, rig: Rig, env: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """`kgs control` of one of both versions, killed at the end of the block if it is still there."""
    with rig.log.open("ab") as log:
        command = [str(kgs), *rig.command("control")[1:]]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def test_a_group_of_the_former_version_is_replaced_one_by_one(
    released: Path, kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """Consumers of 0.1 read on under a controller of this version, until each has given way to one of it."""
    topic = f"{topic_prefix}load"
    packing = {**SECTIONS["packing"], "spare_consumers": 1}
    known = {"packing": packing, "monitor": {"window_s": 12.0}, "topics": [{"topic": topic}]}  # to 0.1
    rig = Rig(tmp_path, kafka, topic, **known)
    former = {**environ(), "KGS_BATCH_RUNNER": os.environ["KGS_BATCH_RUNNER"]}
    try:
        with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: CALM):
            with controller(released, rig, former) as control:
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
    finally:
        rig.clean_up()
