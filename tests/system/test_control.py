"""`kgs control`, a real broker, real consumers: the group grows, shrinks, pauses, and survives its controller."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from bench.load_shapes import KnownLoad
from kgs_core.config.file import load_settings
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import KgsError
from kgs_core.model import TopicPartition
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.system.processes import find_runs, leader_of
from tests.failpoints import crash_at
from tests.system.billing import billed
from tests.system.exporter import Scrape, counted, exporter, scraped_beside
from tests.system.pipeline import KGS, HasAddresses, Pipeline, json_values, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow(30), pytest.mark.timeout(1500)]
PARTITIONS = 4
CALM, BUSY = 40_000.0, 160_000.0
LIFE_S = 300.0
SECTIONS = {
    "monitor": {"window_s": 6.0},
    "packing": {
        "packing_capacity_bytes_per_s": 100_000.0,
        "consumer_capacity_bytes_per_s": 120_000.0,
        "spare_consumers": 0,
        "sentinel_timeout_s": 5.0,
    },
    "membership": {
        "suspect_after_s": 6.0,
    },
}


class Rig:
    """A group of its own on the shared broker, with the commands of its people."""

    def __init__(self, folder: Path, kafka: HasAddresses, topic: str, **sections: Any) -> None:
        self.topic = topic
        hours = {"since": "2026-11-01"}
        self.pipeline = Pipeline(folder, kafka.bootstrap_servers, [{"topic": topic, "complete_hours": hours}])
        tree = yaml.safe_load(self.pipeline.config.read_text())
        self.pipeline.config.write_text(yaml.safe_dump({**tree, **SECTIONS, **sections}))
        self.settings = self.pipeline.settings = load_settings(self.pipeline.config, {})
        self.pipeline.admin.create_topic(topic, PARTITIONS)
        self.log = folder / "control.log"
        self._watch: GroupWatch | None = None

    def command(self, *arguments: str) -> list[str]:
        return [KGS, arguments[0], "--config", str(self.pipeline.config), *arguments[1:]]

    def kgs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of a user, which must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self.tail()}"
        return done

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of a user, however it ends."""
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=300, check=False)

    @contextmanager
    def controller(self, *arguments: str, **environ: str) -> Iterator["subprocess.Popen[bytes]"]:
        """`kgs control`, killed at the end of the block if it is still there."""
        with self.log.open("ab") as log:
            command, env = self.command("control", *arguments), {**os.environ, **environ}
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=env)
        try:
            yield process
        finally:
            process.kill()
            process.wait(10)

    def consumers(self) -> dict[int, int]:
        """Consumer -> pid of every run of this group on this machine."""
        found = {}
        for name, members in find_runs(f"{self.settings.group}@").items():
            if (leader := leader_of(members)) is not None:
                number = int(name.split("/")[-2])
                assert number not in found, f"consumer {number} runs twice"
                found[number] = leader.pid
        return found

    def clean_up(self) -> None:
        self.close()
        for members in find_runs(f"{self.settings.group}@").values():
            for member in members:
                try:
                    member.kill()
                except psutil.NoSuchProcess:
                    continue

    def wait(self, condition: Callable[[GroupStatus], object], message: str, timeout_s: float = LIFE_S) -> GroupStatus:
        """The first look at the group that `condition` holds for."""

        def attempt() -> GroupStatus | None:
            try:
                found = self.look()
            except KgsError:  # its topics are not there yet, or Kafka is not
                return None
            return found if condition(found) else None

        try:
            found = wait_until(attempt, timeout_s, message)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.tail()}") from None
        assert found is not None
        return found

    def look(self) -> GroupStatus:
        if self._watch is None:
            self._watch = GroupWatch(self.settings)
        try:
            return self._watch.look(with_lake=False)
        except KgsError:
            self.close()
            raise

    def close(self) -> None:
        """End the watch; the next look begins another one."""
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def wait_readers(self, number: int) -> GroupStatus:
        """Waits until so many consumers read everything, and no other one is left."""
        return self.wait(
            lambda found: (
                found.is_converged
                and len(set(found.current.values())) == number == len(found.consumers)
                and len(found.current) == PARTITIONS
            ),
            f"{number} consumers",
        )

    def tail(self) -> str:
        logs = [self.log, *sorted((self.pipeline.folder / "logs").glob("*.log"))]
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-3000:]}" for log in logs if log.exists())


@pytest.fixture
def rig(kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, kafka, f"{topic_prefix}load")
    try:
        yield rig
    finally:
        rig.clean_up()


def ended(process: "subprocess.Popen[bytes]", timeout_s: float = 60) -> int:
    """How a controller that is asked to end does so."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout_s)


def positions(rig: Rig) -> dict[TopicPartition, int | None]:
    return rig.pipeline.positions([rig.topic])


def test_a_group_follows_its_load(rig: Rig) -> None:
    """One consumer, two when four times as much is written, one again; nothing lost."""
    speed = CALM
    load = KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: speed)
    with load, rig.controller() as control, exporter(rig.command("metrics")) as metrics, billed(rig.kgs):
        assert "kgs_controller_up" not in "".join(metrics())  # no topics of the group yet: nothing is known
        rig.wait_readers(1)
        found = json.loads(rig.kgs("status", "--json").stdout)
        assert (found["converged"], found["controller"]) == (True, "heard")
        assert found["target"] == found["current"] == {rig.topic: {str(n): 1 for n in range(PARTITIONS)}}
        assert [consumer["id"] for consumer in found["consumers"]] == [1]
        assert found["consumers"][0]["stopped"] == {}
        assert isinstance(found["lag"], int)

        speed = BUSY
        rig.wait_readers(2)
        assert rig.consumers().keys() == {1, 2}
        planned = lambda: json.loads(rig.kgs("plan", "--json").stdout)  # noqa: E731
        # While the measured speed rises, a plan may ask for more than was moved
        plan = wait_until(lambda: len((plan := planned())["moves"]) <= 1 and plan, 60, "the plan is what was moved")
        assert len(set(plan["assignment"][rig.topic].values())) == plan["consumers"] == 2

        speed = CALM
        found = rig.wait_readers(1)
        assert [number for number, _ in groupby(change.consumers for change in found.changes)] == [1, 2, 1]
        wait_until(lambda: len(rig.consumers()) == 1, 60, f"the other one ended: {rig.tail()}")
        assert_all_is_shown(rig, metrics)
        assert ended(control) == 0, rig.tail()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()


def assert_all_is_shown(rig: Rig, metrics: Scrape) -> None:
    """What `kgs metrics` says of one consumer that reads all, after two changes; the end of one is known."""
    wait_until(lambda: counted(metrics()) >= (2, 1, 1), 60, f"changes are counted: {rig.tail()}")
    wait_until(lambda: [v for n, v in metrics().items() if 'state="joined"' in n] == [1], 60, "one has left")
    shown = metrics()
    assert [shown[n] > 0 for n in shown if n.startswith(("kgs_consumer_memory", "kgs_commits_total"))] == [True] * 2
    assert [shown[name] for name in shown if 'state="owned"' in name] == [1.0] * PARTITIONS
    lags = [0 <= value < 60 for name, value in shown.items() if name.startswith("kgs_partition_lag_seconds")]
    assert lags == [True] * PARTITIONS
    rows = len(rig.pipeline.rows(rig.topic))
    wait_until(lambda: max(v for n, v in metrics().items() if "kgs_table_rows" in n) >= rows, 60, "rows of the table")
    assert {v for n, v in metrics().items() if "kgs_audit_findings" in n} == {0.0}
    assert any("kgs_table_complete_until" in name for name in metrics())
    assert [each["problem"] for each in json.loads(rig.kgs("status", "--json").stdout)["complete"]] == [None]


def test_a_group_follows_its_people(rig: Rig) -> None:
    """Paused, resumed, stopped and resumed; nothing lost."""
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: CALM), rig.controller("--metrics-port", "0") as control:
        rig.wait_readers(1)
        wait_until(lambda: "kgs_controller_up" in "".join(scraped_beside(rig.log)), 60, "metrics of the controller")
        assert "asked for: pause" in (paused := rig.kgs("pause", "--wait").stdout)
        assert paused.endswith("done\n")
        before = positions(rig)
        assert rig.look().current == {}
        assert "paused: no consumer reads" in rig.kgs("status").stdout
        assert positions(rig) == before
        assert len(rig.consumers()) == 1

        rig.kgs("resume", "--wait")
        wait_until(lambda: all((p or 0) > (before[tp] or 0) for tp, p in positions(rig).items()), 60, "read again")

        rig.kgs("stop", "--yes", "--wait")
        wait_until(lambda: not rig.consumers(), 60, f"all have ended: {rig.tail()}")
        assert control.poll() is None, rig.tail()
        rig.kgs("resume")
        rig.wait_readers(1)
        assert ended(control) == 0, rig.tail()
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()
    assert len(rig.consumers()) == 1


@pytest.mark.chaos
def test_consumers_outlive_their_controller_and_the_dead_are_replaced(rig: Rig) -> None:
    with KnownLoad(rig.pipeline.bootstrap, rig.topic, lambda _: BUSY):
        with rig.controller() as control:
            before = rig.wait_readers(2)
            control.kill()
        down = rig.wait(lambda found: not found.controller_is_heard, "it is seen that the controller is down")
        assert down.current == before.current
        assert "the controller is down" in rig.kgs("status").stdout
        old = positions(rig)
        wait_until(lambda: all((p or 0) > (old[tp] or 0) for tp, p in positions(rig).items()), 60, "they read on")
        with rig.controller() as control:
            rig.wait(lambda found: found.controller_is_heard, "another controller")
            found = rig.wait_readers(2)
            assert [c.incarnation for c in found.consumers] == [c.incarnation for c in before.consumers]
            victim = rig.consumers()[1]
            os.kill(victim, signal.SIGKILL)
            known = {c.incarnation for c in before.consumers}
            rig.wait(
                lambda found: (
                    found.is_converged
                    and len(found.current) == PARTITIONS
                    and any(c.incarnation not in known for c in found.consumers)
                ),
                "the dead one has a successor",
            )
            assert victim not in rig.consumers().values()
            assert ended(control) == 0
    rig.pipeline.wait_caught_up([rig.topic])
    rig.pipeline.assert_exact(rig.topic)
    rig.pipeline.assert_audit_is_clean()


POINTS = (
    *("before-fence", "fenced", "before-read", "read", "before-write", "in-transaction", "after-write"),
    *("before-launch", "launched"),
)


@pytest.mark.chaos
def test_a_controller_killed_at_every_point_in_turn(rig: Rig, tmp_path: Path) -> None:
    """Each life ends at the next point, the last one lives on; nothing is started twice, nothing lost."""
    produce(rig.pipeline.bootstrap, rig.topic, json_values(0, 1000))
    for point in POINTS:
        with rig.controller(**crash_at(point, tmp_path)) as control:
            wait_until(lambda: control.poll() is not None, 120, f"dead at {point}: {rig.tail()}")
            assert control.returncode == -signal.SIGKILL, rig.tail()
        assert (tmp_path / point).exists()
    (started,) = rig.consumers().values()
    with rig.controller("--end-consumers") as control:
        rig.wait_readers(1)
        assert list(rig.consumers().values()) == [started]
        rig.pipeline.wait_caught_up([rig.topic])
        assert ended(control, 120) == 0, rig.tail()
    assert rig.consumers() == {}
    assert find_runs(f"{rig.settings.group}@") == {}
    rig.pipeline.assert_exact(rig.topic)


@pytest.mark.chaos
def test_a_newer_controller_ends_the_older_one_for_good(rig: Rig) -> None:
    with rig.controller() as first:
        rig.wait_readers(1)
        with rig.controller("--end-consumers") as second:
            produce(rig.pipeline.bootstrap, rig.topic, json_values(0, 10))
            rig.kgs("stop", "--yes", "--wait")  # makes them write
            assert first.wait(60) == 3
            assert "do not start it again" in rig.log.read_text()
            assert second.poll() is None
            assert ended(second) == 0, rig.tail()
