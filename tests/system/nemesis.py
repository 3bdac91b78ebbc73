"""What machines do to a group, at random from a seed: each fault begins, lasts a while, and is healed."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil
import yaml

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import KgsError
from kgs_core.system.processes import find_runs
from tests.system.pipeline import ConsumerProcess
from tests.system.test_control import Rig
from tests.topics import create_partitions

LAKE_BYTES = 256_000_000
MAX_PARTITIONS = 8
LONGEST_S = 15.0
APART_S = (0.2, 2.0)
Heal = Callable[[], None]


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own for the lake, so that it can be full or read-only; needs the right to mount."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LAKE_BYTES}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@dataclass
class Nemesis:
    """Faults on a group that is run by `kgs control`.

    Attributes:
        disk: where the lake is mounted.
        logged: what was done, for people.
        struck: how often each fault found something to strike.
        healing: what ends the faults that last.
        quiet_from: no promise about who reads holds before this moment (steady clock): something lasts that nobody can
            read through, or has just ended.
    """

    random: Random
    rig: Rig
    kafka: EmbeddedKafka
    disk: Path
    control: "subprocess.Popen[bytes] | None" = None
    logged: list[str] = field(default_factory=list)
    healing: list[tuple[float, str, Heal]] = field(default_factory=list)
    quiet_from: float = 0.0
    partitions: int = 4
    struck: Counter[str] = field(default_factory=Counter)
    _twins: list[ConsumerProcess] = field(default_factory=list)
    _versions: int = 0

    def run(self, faults: "Sequence[Fault]", seconds: float = 0.0) -> None:
        """All of these, in an order of the seed, and then in others until so many seconds are over; three at a time."""
        end = time.monotonic() + seconds
        self._play(faults)
        while time.monotonic() < end:
            self._play(faults)
        self.heal(due=float("inf"))
        self.keep_controller()

    def _play(self, faults: "Sequence[Fault]") -> None:
        """Each of them once, a moment apart; one that finds nothing to strike has its turn again after the others."""
        turns = self.random.sample(faults, len(faults))
        while turns:
            self.keep_controller()
            self.heal(due=time.monotonic())
            if len(self.healing) < 3:
                fault = turns.pop(0)
                if not self.strike(fault):
                    turns.append(fault)
            time.sleep(self.random.uniform(*APART_S))

    def strike(self, fault: "Fault") -> bool:
        """One fault; False where it finds nothing to strike."""
        try:
            heal = fault(self)
        except (psutil.Error, ProcessLookupError, LookupError, KgsError, OSError) as e:
            self.tell(f"{fault.__name__}: not now ({type(e).__name__})")
            return False
        self.struck[fault.__name__] += 1
        self.tell(fault.__name__)
        if heal is not None:
            lasts = self.random.uniform(1.0, LONGEST_S)
            self.healing.append((time.monotonic() + lasts, fault.__name__, heal))
        return True

    def heal(self, due: float) -> None:
        """End the faults whose time is over."""
        while over := [each for each in self.healing if each[0] <= due]:  # to end one may end others, too
            entry = over[0]
            self.healing.remove(entry)
            with suppress(psutil.Error):
                entry[2]()
            self.tell(f"{entry[1]} is over")

    def tell(self, what: str) -> None:
        """Note it."""
        self.logged.append(f"{time.strftime('%H:%M:%S')} {what}")

    def keep_controller(self) -> None:
        """A controller that has ended is started again, as a supervisor does."""
        if self.control is not None and self.control.poll() is None:
            return
        with self.rig.log.open("ab") as log:
            self.control = subprocess.Popen(
                self.rig.command("control"), stdout=log, stderr=log, start_new_session=True, env=dict(os.environ)
            )

    def end(self) -> None:
        """Ends everything that was started here, by pid."""
        self.heal(due=float("inf"))
        if self.control is not None:
            self.control.kill()
            self.control.wait(10)
        for twin in self._twins:
            twin.destroy()
        self.rig.clean_up()

    def disturbed(self, seconds: float = LONGEST_S) -> None:
        """Nobody can be asked to read for so long."""
        self.quiet_from = max(self.quiet_from, time.monotonic() + seconds)

    def member(self, kind: str) -> psutil.Process:
        """A process of some consumer: its driver, JVM or Python worker."""
        runs = find_runs(f"{self.rig.settings.group}@")
        found = [process for members in runs.values() for process in members if _kind_of(process) == kind]
        return self.random.choice(sorted(found, key=lambda process: process.pid))

    def whole_run(self) -> list[psutil.Process]:
        """All processes of some consumer."""
        runs = find_runs(f"{self.rig.settings.group}@")
        return runs[self.random.choice(sorted(runs))]

    def refuse_beside(self, *faults: str) -> None:
        """Faults of one thing do not last side by side.

        Raises:
            LookupError: one of these lasts.
        """
        if any(name in faults for _, name, _ in self.healing):
            raise LookupError

    def twin(self, number: int) -> None:
        """A second process of a consumer, which nobody asked for."""
        self._twins.append(ConsumerProcess(self.rig.pipeline, number, [], {}))

    def another_configuration(self) -> None:
        """What `kgs replace` rolls out: the same, in other words."""
        self._versions += 1
        config = self.rig.pipeline.config
        tree = yaml.safe_load(config.read_text())
        tree["consumer"]["wait_time_s"] = 0.1 + self._versions / 1000
        config.write_text(yaml.safe_dump(tree))


def _kind_of(process: psutil.Process) -> str:
    try:
        command = " ".join(process.cmdline())
        if "java" in process.name():
            return "jvm"
        if "pyspark" in command and "daemon" in command:
            return "worker"
        return "driver" if os.getsid(process.pid) == process.pid else "other"
    except (psutil.Error, ProcessLookupError):
        return "gone"


def _frozen(processes: list[psutil.Process]) -> Heal:
    for process in processes:
        process.suspend()

    def thaw() -> None:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()

    return thaw


def kill_driver(nemesis: Nemesis) -> None:
    nemesis.member("driver").kill()


def kill_jvm(nemesis: Nemesis) -> None:
    nemesis.member("jvm").kill()


def kill_worker(nemesis: Nemesis) -> None:
    nemesis.member("worker").kill()


def kill_whole_run(nemesis: Nemesis) -> None:
    for process in nemesis.whole_run():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def freeze_driver(nemesis: Nemesis) -> Heal:
    return _frozen([nemesis.member("driver")])


def freeze_jvm(nemesis: Nemesis) -> Heal:
    return _frozen([nemesis.member("jvm")])


def freeze_worker(nemesis: Nemesis) -> Heal:
    return _frozen([nemesis.member("worker")])


def freeze_whole_run(nemesis: Nemesis) -> Heal:
    return _frozen(nemesis.whole_run())


def kill_controller(nemesis: Nemesis) -> None:
    nemesis.disturbed()
    if nemesis.control is not None:
        nemesis.control.kill()
        nemesis.control.wait(10)


def freeze_controller(nemesis: Nemesis) -> Heal:
    nemesis.disturbed(2 * LONGEST_S)
    if nemesis.control is None:
        raise LookupError
    return _frozen([psutil.Process(nemesis.control.pid)])


def kill_broker(nemesis: Nemesis) -> Heal:
    (node,) = nemesis.kafka.nodes
    nemesis.refuse_beside("kill_broker", "freeze_broker")
    nemesis.disturbed(3 * LONGEST_S)
    node.kill()
    return lambda: nemesis.kafka.restart(node)


def freeze_broker(nemesis: Nemesis) -> Heal:
    (node,) = nemesis.kafka.nodes
    nemesis.refuse_beside("kill_broker", "freeze_broker")
    nemesis.disturbed(2 * LONGEST_S)
    return _frozen([psutil.Process(node.pid)])


def fill_disk(nemesis: Nemesis) -> Heal:
    nemesis.refuse_beside("fill_disk", "read_only_disk")
    nemesis.disturbed(2 * LONGEST_S)
    filler = nemesis.disk / "filler"
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(100_000))
    return filler.unlink


def read_only_disk(nemesis: Nemesis) -> Heal:
    nemesis.refuse_beside("fill_disk", "read_only_disk")
    nemesis.disturbed(2 * LONGEST_S)

    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how},size={LAKE_BYTES}", nemesis.disk], check=True)

    remount("ro")
    return lambda: remount("rw")


def start_a_twin(nemesis: Nemesis) -> None:
    numbers = sorted({int(name.split("/")[-2]) for name in find_runs(f"{nemesis.rig.settings.group}@")})
    nemesis.twin(nemesis.random.choice(numbers))


def replace_everybody(nemesis: Nemesis) -> Heal:
    """What was refused or not answered is said again: till then nobody joins with the file as it is now."""
    nemesis.another_configuration()
    nemesis.rig.run("replace", "--timeout", "5")
    return lambda: _say_until_it_is_taken(nemesis, "replace")


def pause_everybody(nemesis: Nemesis) -> Heal:
    nemesis.disturbed(3 * LONGEST_S)
    nemesis.rig.run("pause", "--timeout", "5")
    return lambda: _say_until_it_is_taken(nemesis, "resume")


def _say_until_it_is_taken(nemesis: Nemesis, what: str) -> None:
    while nemesis.rig.run(what, "--timeout", "10").returncode != 0:
        nemesis.heal(due=float("inf"))  # the broker is away as well


def add_a_partition(nemesis: Nemesis) -> None:
    admin, topic = nemesis.rig.pipeline.admin, nemesis.rig.topic
    if nemesis.partitions >= MAX_PARTITIONS:
        return
    if admin.describe([topic])[topic].partitions == nemesis.partitions:  # else an answer was lost, and it is there
        create_partitions(admin, topic, nemesis.partitions + 1)
    nemesis.partitions += 1


Fault = Callable[[Nemesis], "Heal | None"]
OF_SPARK: tuple[Fault, ...] = (kill_jvm, kill_worker, freeze_jvm, freeze_worker)
OF_CONSUMERS: tuple[Fault, ...] = (kill_driver, kill_whole_run, freeze_driver, freeze_whole_run)
OF_OTHERS: tuple[Fault, ...] = (
    *(kill_controller, freeze_controller, kill_broker, freeze_broker),
    *(fill_disk, read_only_disk, start_a_twin, replace_everybody, pause_everybody, add_a_partition),
)
FAULTS = 2 * OF_CONSUMERS + 2 * OF_SPARK + OF_OTHERS
WITHOUT_SPARK = 2 * OF_CONSUMERS + OF_OTHERS
SPARK_ABOVE_ALL = OF_CONSUMERS + 2 * OF_SPARK + (kill_controller, kill_broker, fill_disk)
