"""A group of its own on a broker that others use too: its controller, its consumers, the commands of its people."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import psutil

from kgs_core.errors import KgsError
from kgs_core.reporting.status import GroupStatus
from kgs_core.runtime.group_status import GroupWatch
from kgs_core.system.processes import find_runs, leader_of
from tests.system.pipeline import KGS, HasAddresses, Pipeline
from tests.waiting import wait_until

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
        self.settings = self.pipeline.add(**{**SECTIONS, **sections})
        self.pipeline.admin.create_topic(topic, PARTITIONS)
        self.log = folder / "control.log"
        self._controllers: list[subprocess.Popen[bytes]] = []
        self._watch: GroupWatch | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clean_up()

    def kgs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of a user, which must succeed."""
        done = self.pipeline.kgs(*arguments)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self.tail()}"
        return done

    @contextmanager
    def controller(
        self, *arguments: str, kgs: str = KGS, outer: Mapping[str, str] = os.environ, **environ: str
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """`kgs control`, killed at the end of the block if it is still there."""
        with self.log.open("ab") as log:
            command, env = [kgs, *self.pipeline.command("control", *arguments)[1:]], {**outer, **environ}
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=env)
        self._controllers.append(process)
        try:
            yield process
        finally:
            self._controllers.remove(process)
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
        """The first look at the group that `condition` holds for; none comes where every controller has ended."""

        def attempt() -> GroupStatus | None:
            ends = [each.poll() for each in self._controllers]
            assert not ends or None in ends, f"{message}: the controller has ended with {ends}"
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


def ended(process: "subprocess.Popen[bytes]", timeout_s: float = 60) -> int:
    """How a controller that is asked to end does so."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout_s)
