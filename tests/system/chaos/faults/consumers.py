"""Consumers that die, freeze, or are there twice."""

import os
from contextlib import suppress

import psutil

from tests.system.chaos.nemesis import Fault, Heal, Nemesis


def kind_of(process: psutil.Process, driver: psutil.Process) -> str:
    """Driver, JVM or Python worker."""
    if process.pid == driver.pid:
        return "driver"
    command = " ".join(process.cmdline())
    if "java" in process.name():
        return "jvm"
    return "worker" if "pyspark" in command and "daemon" in command else "other"


def frozen(processes: list[psutil.Process]) -> Heal:
    """They stand still, till what it gives is called."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()

    def thaw() -> None:
        for process in processes:
            with suppress(psutil.Error):
                process.resume()

    return thaw


def _member(nemesis: Nemesis, kind: str) -> psutil.Process:
    found = []
    for driver, *others in nemesis.stage.consumers().values():
        for process in (driver, *others):
            with suppress(psutil.Error):
                if kind_of(process, driver) == kind:
                    found.append(process)
    chosen: psutil.Process = nemesis.random.choice(sorted(found, key=lambda process: process.pid))
    nemesis.journal.tell(f"chosen: {kind} {chosen.pid}")
    return chosen


def _whole(nemesis: Nemesis) -> list[psutil.Process]:
    number = nemesis.choose_consumer()
    nemesis.journal.tell(f"chosen: consumer {number}")
    return nemesis.stage.consumers()[number]


def kill_driver(nemesis: Nemesis) -> None:
    _member(nemesis, "driver").kill()


def kill_jvm(nemesis: Nemesis) -> None:
    _member(nemesis, "jvm").kill()


def kill_worker(nemesis: Nemesis) -> None:
    _member(nemesis, "worker").kill()


def kill_whole_run(nemesis: Nemesis) -> None:
    for process in _whole(nemesis):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def end_driver(nemesis: Nemesis) -> None:
    _member(nemesis, "driver").terminate()


def freeze_driver(nemesis: Nemesis) -> Heal:
    return frozen([_member(nemesis, "driver")])


def freeze_jvm(nemesis: Nemesis) -> Heal:
    return frozen([_member(nemesis, "jvm")])


def freeze_worker(nemesis: Nemesis) -> Heal:
    return frozen([_member(nemesis, "worker")])


def freeze_whole_run(nemesis: Nemesis) -> Heal:
    return frozen(_whole(nemesis))


def freeze_and_kill(nemesis: Nemesis) -> Heal:
    """A machine that hangs, and is then switched off: what was sent to it meanwhile is never heard."""
    processes = _whole(nemesis)
    frozen(processes)

    def kill() -> None:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    return kill


def start_a_twin(nemesis: Nemesis) -> None:
    """A second process of a consumer, which nobody asked for."""
    nemesis.stage.start_by_hand(nemesis.choose_consumer())


def slow_consumer(nemesis: Nemesis) -> Heal:
    """It gets hardly any CPU, as beside a neighbour that takes all of it."""
    processes = _whole(nemesis)

    def renice(value: int) -> None:
        for process in processes:
            with suppress(psutil.Error):
                process.nice(value)

    renice(19)
    return lambda: renice(os.nice(0))


_SPARK = tuple(
    Fault(strike, "spark", fits=lambda stage: stage.options.spark)
    for strike in (kill_jvm, kill_worker, freeze_jvm, freeze_worker)
)
_CONSUMERS = (
    *(kill_driver, kill_whole_run, end_driver, freeze_driver, freeze_whole_run, freeze_and_kill),
    *(start_a_twin, slow_consumer),
)
FAULTS = (*_SPARK, *(Fault(strike, "consumers") for strike in _CONSUMERS))
