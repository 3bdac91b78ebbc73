"""The real things that tests of this folder share, and which of its files stay together for what they share."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.kafka.admin import KafkaAdmin
from tests.system.shaken_group import ShakenGroup
from tests.system.small_sink import settings_text
from tests.system.stores import new_lake, object_server, s3_server, server_of
from tests.wheel import RELEASED, ROOT

__all__ = ["new_lake", "object_server", "s3_server", "server_of"]
_numbers = itertools.count(1)
_TOGETHER = (
    "test_dagster_postgres.py",
    "test_group_topic_faults.py",
    "test_hanging_transactions.py",
    "test_ingest.py",
    "test_mutual_tls.py",
    "test_keycloak.py",
    "test_real_glue.py",
    "test_real_registry.py",
    "test_rights.py",
    "test_three_brokers.py",
)
"""Files whose tests share a broker or a consumer of their own, which each worker that had one of them would start."""


def _has(commit: str) -> bool:
    git = shutil.which("git")
    if git is None:
        return False
    return subprocess.run([git, "cat-file", "-e", commit], cwd=ROOT, capture_output=True, check=False).returncode == 0


collect_ignore = [] if _has(RELEASED) else ["test_take_over.py"]
"""A checkout without history has no version 0.1 to take over."""


def pytest_report_header() -> str:
    """What is not collected."""
    return "".join(f"not collected, for lack of git history: {file}" for file in collect_ignore)


class _OneByOne(LoadScopeScheduling):
    """Gives a worker the next test when it is free, and all tests of a file that stays together at once.

    Every second worker begins with the shortest tests: those wait where the long ones start processes, so all cores are
    busy from the first test to the last, and fewer of the longest run at once.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.endswith(_TOGETHER) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _OneByOne:
    """In the order of `seconds_of`."""
    config.option.loadscopereorder = False
    return _OneByOne(config, log)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One broker for all tests of this process; whoever stops or kills a broker starts one of their own.

    It looks for what to compact without the pause of 15 s.
    """
    settings = {"log.cleaner.backoff.ms": "500"}
    with EmbeddedKafka.start(tmp_path_factory.mktemp("kafka"), settings=settings, log=print) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def admin(kafka: EmbeddedKafka) -> KafkaAdmin:
    """Administration of the shared broker."""
    return KafkaAdmin({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.fixture
def topic_prefix() -> str:
    """What the names of a test's topics begin with, so that tests do not meet on the shared broker."""
    return f"test{os.getpid()}-{next(_numbers)}."


@pytest.fixture
def config(kafka: EmbeddedKafka, tmp_path: Path, topic_prefix: str) -> Path:
    """The kgs.yaml of a `SmallSink`: all of the test's topics."""
    path = tmp_path / "kgs.yaml"
    path.write_text(settings_text(kafka, tmp_path / "lake", topic_prefix))
    return path


@pytest.fixture
def open_group(
    kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., ShakenGroup]]:
    """Makes groups that are ended when the test is over, and told of."""
    opened = []

    def open_(**more: Any) -> ShakenGroup:
        folder = tmp_path / topic_prefix.rstrip(".")  # names the group, whose processes are found by its name
        folder.mkdir()
        opened.append(ShakenGroup(folder, kafka, f"{topic_prefix}load", **more))
        return opened[-1]

    try:
        yield open_
    finally:
        for group in opened:
            group.clean_up()
            with capsys.disabled():
                print("", *group.logged, sep="\n")
