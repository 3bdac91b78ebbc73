"""A consumer as a run of Dagster: launched as people do it, assigned and ended as controller and fleet do it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
import yaml
from dagster import DagsterRunStatus as Status

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Phase, Report
from kgs_core.model import ConsumerId, TopicPartition
from kgs_dagster.launch import INCARNATION, DagsterFleet, attempt_of, consumer_run_request
from kgs_dagster.run_process import process_of
from kgs_dagster.settings import GroupConfig
from tests.system.group_topics import Group, group_on
from tests.system.pipeline import Pipeline, json_values, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(60), pytest.mark.timeout(900)]
DAGSTER = str(Path(sys.executable).with_name("dagster"))
LIFE_S = 240.0
ONE = ConsumerId(1)


class Rig:
    """A group, its controller's writer in the test's hand, and an instance of Dagster without daemon and queue."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, topic: str, group: Group, instance: dg.DagsterInstance):
        self.folder = folder
        self.log = folder / "launch.log"
        self.topic = topic
        self.group = group
        self.instance = instance
        self.pipeline = Pipeline(folder, kafka.bootstrap_servers, [{"topic": topic}])
        self.pipeline.add(membership={"suspect_after_s": 6.0})
        self.pipeline.admin.create_topic(topic, 2)
        self.all = frozenset(TopicPartition(topic, number) for number in range(2))
        self.config = GroupConfig(self.pipeline.settings, self.pipeline.config, "")
        self.fleet = DagsterFleet(instance, self.config)
        self.writer = group.writer()
        self.reader = group.reader()
        self.reader.read_to_end()
        self.reports: list[Report | Heartbeat] = []
        self.sent = 0

    def launch(self, *, wait: bool = True, **environ: str) -> str:
        """A run of consumer 1, by the request that the sensor would make; returns its id, once it has joined."""
        request = consumer_run_request(self.config, ONE, self.fleet.next_attempt(ONE))
        command = [DAGSTER, "job", "launch", "-m", "kgs_dagster.definitions", "-j", str(request.job_name)]
        command += ["--config-json", json.dumps(request.run_config), "--tags", json.dumps(request.tags)]
        environ |= {
            "DAGSTER_HOME": str(self.folder / "home"),
            "KGS_CONFIG": str(self.pipeline.config),
            "DAGSTER_GRPC_TIMEOUT_SECONDS": "240",  # its default is too short where other tests run beside this one
        }
        with self.log.open("ab") as log:  # no pipe: the run has it, too, and would hold it open
            done = subprocess.run(
                command,
                env={**os.environ, **environ},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                timeout=LIFE_S,
                check=False,
            )
        assert done.returncode == 0, self.log.read_text()[-3000:]
        run_id = self.fleet.runs()[-1].handle
        if not wait:
            return run_id
        wait_until(lambda: self.ended(run_id) or self.member(run_id), LIFE_S, f"joined: {self.story(run_id)}")
        assert self.status(run_id) is Status.STARTED, self.story(run_id)
        return run_id

    def member(self, run_id: str) -> Member | None:
        """Who the run is, once its first report is there."""
        tags = self.tags(run_id)
        member = Member(ONE, Incarnation(tags.get(INCARNATION, "")))
        return member if self.said_by(member) else None

    def said_by(self, member: Member | None) -> list[Report | Heartbeat]:
        self.reports += [r.message for r in self.reader.poll(0.0) if isinstance(r.message, Report | Heartbeat)]
        return [report for report in self.reports if report.member == member]

    def assignment(self, run_id: str, *owned: TopicPartition, retire: bool = False) -> None:
        member = self.member(run_id)
        assert member is not None
        self.writer.write(None, [MemberAssignment(member, frozenset(owned), retire=retire)], [])

    def produce(self, count: int) -> None:
        produce(self.pipeline.bootstrap, self.topic, json_values(self.sent, count))
        self.sent += count

    def status(self, run_id: str) -> Status:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run.status

    def tags(self, run_id: str) -> dict[str, str]:
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return dict(run.tags)

    def ended(self, run_id: str) -> bool:
        return self.status(run_id) in (Status.SUCCESS, Status.FAILURE, Status.CANCELED)

    def wait_ended(self, run_id: str) -> Status:
        wait_until(lambda: self.ended(run_id), LIFE_S, f"ended: {self.story(run_id)}")
        return self.status(run_id)

    def process(self, run_id: str) -> HostProcess:
        found = process_of(self.tags(run_id))
        assert found is not None
        return found

    def assert_alive(self, run_id: str) -> None:
        """The run, its process and its reports are one."""
        process = self.process(run_id)
        first = next(report for report in self.said_by(self.member(run_id)) if isinstance(report, Report))
        assert first.process == process.as_process()
        assert process.run_id == run_id
        assert self.fleet.is_dead(process.as_process()) is False
        assert [(run.consumer, run.handle, run.is_over) for run in self.fleet.runs()] == [(ONE, run_id, False)]

    def assert_dead(self, run_id: str, exit_code: int) -> None:
        process = self.process(run_id)
        wait_until(process.is_gone, 60, "its process is gone")
        assert self.fleet.is_dead(process.as_process()) is True
        assert [(run.is_over, run.exit_code) for run in self.fleet.runs()] == [(True, exit_code)]

    def events(self, run_id: str) -> list[str]:
        """What its event log says."""
        return [entry.user_message or entry.message for entry in self.instance.all_logs(run_id)]

    def events_but_changes(self, run_id: str) -> list[str]:
        """Without the lines that say what is read: one at a change, and once a minute at most."""
        return [said for said in self.events(run_id) if not said.startswith("consumer 1 reads")]

    def story(self, run_id: str) -> str:
        logs = [path.read_text(errors="replace")[-2000:] for path in (self.folder / "home").rglob("*.err")]
        return "\n".join([*self.events(run_id), *logs])

    def destroy(self) -> None:
        """End what is left: runs of a failed test; code servers, which hang once their instance's folder is gone."""
        pids = [each.pid for each in psutil.process_iter() if self._serves(each)]
        for run in self.fleet.runs():
            process = process_of(self.tags(run.handle))
            if process is not None and process.is_gone() is False:
                pids.append(process.pid)
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                first = psutil.Process(pid)
                for member in (first, *first.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        member.kill()

    def _serves(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error):
            return {"grpc", str(self.folder)} <= set(process.cmdline())
        return False


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    home = tmp_path / "home"
    home.mkdir()
    settings: dict[str, Any] = {
        "telemetry": {"enabled": False},
        # Nobody is here to take runs out of a queue
        "run_coordinator": {"module": "dagster.core.run_coordinator", "class": "DefaultRunCoordinator"},
    }
    (home / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with (
        dg.DagsterInstance.from_config(str(home)) as instance,
        group_on(kafka.bootstrap_servers, f"group-{tmp_path.name}"[:100]) as group,
    ):
        rig = Rig(tmp_path, kafka, f"{topic_prefix}load", group, instance)
        try:
            yield rig
        finally:
            rig.destroy()


@pytest.mark.spark
def test_a_run_reads_what_it_is_assigned_and_drains_when_it_is_ended(rig: Rig) -> None:
    """Ended in the middle of a backlog, and the rest is read by its next attempt: nothing lost, nothing twice.

    The first one has Spark, which must not keep it from ending in order.
    """
    rig.produce(500)
    first = rig.launch()
    rig.assert_alive(first)
    rig.assignment(first, *rig.all)
    rig.pipeline.wait_caught_up([rig.topic])

    rig.produce(20_000)
    rig.fleet.stop(first)
    rig.produce(1000)
    assert rig.wait_ended(first) is Status.SUCCESS, rig.story(first)
    rig.assert_dead(first, exit_code=0)
    last = rig.said_by(rig.member(first))[-1]
    assert isinstance(last, Report)
    assert (last.phase, last.owned) == (Phase.ENDED, frozenset())

    second = rig.launch(KGS_BATCH_RUNNER="local")
    assert attempt_of(rig.tags(second)) == "2"
    assert rig.member(second) != rig.member(first)
    rig.assignment(second, *rig.all)
    rig.pipeline.wait_caught_up([rig.topic], timeout_s=120)
    rig.assignment(second, retire=True)
    assert rig.wait_ended(second) is Status.SUCCESS, rig.story(second)
    assert any("retired by the controller" in said for said in rig.events(second))
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()


@pytest.mark.spark
def test_a_start_that_is_ended_is_canceled_with_its_reason(rig: Rig) -> None:
    """Needs a real start of Spark: it puts a handler of its own in place of ours, and that one throws."""
    first = rig.launch(wait=False)
    wait_until(lambda: any("joins group" in said for said in rig.events(first)), LIFE_S, rig.story(first))
    rig.fleet.stop(first, "no report within 180 s")
    assert rig.wait_ended(first) is Status.CANCELED, rig.story(first)
    (failure,) = [
        e.dagster_event for e in rig.instance.all_logs(first) if e.dagster_event and e.dagster_event.is_step_failure
    ]
    error = failure.step_failure_data.error
    assert error is not None
    assert "ended before it had joined: asked to end (no report within 180 s)" in error.message
    assert not error.stack


@pytest.mark.chaos
def test_a_run_makes_no_event_of_a_batch_and_one_that_is_killed_is_known_to_be_dead(rig: Rig) -> None:
    rig.produce(500)
    run_id = rig.launch()
    rig.assignment(run_id, *rig.all)
    rig.pipeline.wait_caught_up([rig.topic])
    before = rig.events_but_changes(run_id)
    for _ in range(5):
        rig.produce(200)
        rig.pipeline.wait_caught_up([rig.topic])
    assert rig.events_but_changes(run_id) == before

    rig.produce(5000)
    psutil.Process(rig.process(run_id).pid).kill()
    assert rig.wait_ended(run_id) is Status.FAILURE
    rig.assert_dead(run_id, exit_code=1)
    assert rig.fleet.next_attempt(ONE) == 2
    rig.pipeline.assert_audit_is_clean()
