"""Consumers as processes of this machine: started, found again, asked to end, and known to be dead.

A consumer lives on when the controller ends. What a controller needs to know of it afterwards lies in no file: every
process of a run has the run's name in its environment, from before its first instruction, so that a controller killed
right after a start finds what it started. That is why no consumer is started twice: `start` looks first.
"""

import hashlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil

from kgs_core.config import Settings
from kgs_core.errors import PermanentError, TransientError
from kgs_core.fleet.controller_fleet import FleetOptions
from kgs_core.fleet.host_process import is_gone
from kgs_core.group.protocol import Process
from kgs_core.model import ConsumerId
from kgs_core.ports import Run
from kgs_core.system.files import append_privately
from kgs_core.system.processes import environ_of_run, find_runs, leader_of

AFTERMATH_S = 5.0
"""How long what a dead consumer leaves behind may take to end in order: a JVM deletes its temporary files."""
_KILL_TIMEOUT_S = 5.0
_LOOK_EVERY_S = 1.0
_REMEMBERED_S = 3600.0
_POLL_S = 0.05
_log = logging.getLogger(__name__)

Command = Callable[[ConsumerId], Sequence[str]]


def kgs_command() -> list[str]:
    """The command `kgs` of this very installation, wherever its script is; -P: none of the working directory."""
    return [sys.executable, "-P", "-c", "from kgs_core.cli.main import main; main()"]


@dataclass(slots=True)
class _Life:
    """One run: `child` where this process started it, `leader` where it found it; `members` are all that live."""

    consumer: ConsumerId
    name: str
    began_s: float
    child: "subprocess.Popen[bytes] | None" = None
    leader: psutil.Process | None = None
    members: list[psutil.Process] = field(default_factory=list)
    asked_s: float | None = None
    over_s: float | None = None
    exit_code: int | None = None


class LocalFleet:
    """The runs of one group on this machine; used by one thread."""

    def __init__(self, settings: Settings, command: Command, log_dir: Path, environ: Mapping[str, str]) -> None:
        """Finds what runs already of this group on this Kafka; `log_dir` gets a `consumer-N.log` of each.

        Raises:
            PermanentError: `log_dir` cannot be made.
        """
        where = hashlib.sha256(settings.kafka.bootstrap_servers.encode()).hexdigest()[:8]
        self._prefix = f"{settings.group}@{where}/"
        self._deaf_after_s = settings.consumer.batch_timeout_s
        self._command = command
        self._log_dir = log_dir
        self._environ = environ
        self._lives: dict[str, _Life] = {}
        self._looked_s = float("-inf")
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise PermanentError(f"{log_dir}: {(e.strerror or 'no folder').lower()}: name another --log-dir") from e

    def runs(self) -> Sequence[Run]:
        """Every run that has not ended, and those that ended within the last hour."""
        now = time.monotonic()
        if now - self._looked_s >= _LOOK_EVERY_S:
            self._look()
        for life in self._lives.values():
            self._look_at(life)
        return tuple(
            Run(life.consumer, life.name, now - life.began_s, life.over_s is not None, life.exit_code)
            for life in sorted(self._lives.values(), key=lambda life: (life.consumer, life.began_s))
        )

    def start(self, consumer: ConsumerId, consumer_class: str = "") -> Run:
        """Start one process for this consumer; one that runs already is returned instead.

        Raises:
            TransientError: the machine gives no process, no memory or no log file.
        """
        self._look()
        running = [run for run in self.runs() if run.consumer == consumer and not run.is_over]
        if running:
            _log.warning("not started: it runs already consumer=%d run=%s", consumer, running[-1].handle)
            return running[-1]
        name = f"{self._prefix}{consumer}/{uuid4().hex[:12]}"
        try:
            with append_privately(self._log_dir / f"consumer-{consumer}.log") as log:
                child = subprocess.Popen(
                    self._command(consumer),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environ_of_run(self._environ, name, consumer_class),
                    start_new_session=True,  # neither a Ctrl-C nor the end of the terminal is meant for it
                )
        except OSError as e:
            raise TransientError(f"consumer {consumer} cannot be started: {e}", retry_after_s=5.0) from e
        self._lives[name] = _Life(consumer, name, time.monotonic(), child)
        return Run(consumer, name, 0.0, is_over=False)

    def stop(self, handle: str) -> None:
        """SIGTERM to the consumer itself, which ends its own children; nothing where it has ended.

        One that has not ended after `batch_timeout_s` is killed.
        """
        life = self._lives.get(handle)
        if life is None or life.over_s is not None:
            return
        life.asked_s = time.monotonic() if life.asked_s is None else life.asked_s
        try:
            if life.child is not None:
                life.child.terminate()
            elif life.leader is not None:
                life.leader.terminate()  # psutil makes sure that the id is still this process's
        except (OSError, psutil.Error):
            return

    def is_dead(self, process: Process) -> bool | None:
        """Whether this process is gone for certain; None for one of another machine."""
        return is_gone(process)

    def end_all(self, timeout_s: float, interrupt: Callable[[], bool] = lambda: False) -> tuple[ConsumerId, ...]:
        """See `ControllerFleet`."""
        deadline = time.monotonic() + timeout_s
        asked: set[str] = set()
        self._look()
        while alive := [run for run in self.runs() if not run.is_over]:
            for run in alive:
                if run.handle not in asked:
                    self.stop(run.handle)
                    asked.add(run.handle)
            if interrupt() or time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        deadline = time.monotonic() + (0.0 if alive else AFTERMATH_S)
        while (left := find_runs(self._prefix)) and not interrupt() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        for members in left.values():
            _kill(members)
        deadline = time.monotonic() + _KILL_TIMEOUT_S
        # Takes leave of its own children: else they would stay as zombies
        while any(not run.is_over for run in self.runs()) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return tuple(run.consumer for run in alive)

    def _look(self) -> None:
        """Find runs that somebody else started, and end what dead ones left behind."""
        now = self._looked_s = time.monotonic()
        found = find_runs(self._prefix)
        for name, members in found.items():
            if name not in self._lives and (life := self._adopted(name, members)) is not None:
                self._lives[name] = life
        for life in self._lives.values():
            life.members = found.get(life.name, [])
            if life.members and self._is_overdue(life, now):
                _log.info("killing what is left of consumer=%d processes=%d", life.consumer, len(life.members))
                _kill(life.members)
        self._lives = {
            name: life
            for name, life in self._lives.items()
            if life.over_s is None or now - life.over_s < _REMEMBERED_S or life.members
        }

    def _is_overdue(self, life: _Life, now: float) -> bool:
        if life.over_s is not None:
            return now - life.over_s > AFTERMATH_S
        return life.asked_s is not None and now - life.asked_s > self._deaf_after_s

    def _adopted(self, name: str, members: list[psutil.Process]) -> _Life | None:
        number = name.removeprefix(self._prefix).partition("/")[0]
        if not number.isdigit():
            return None
        try:
            began = min(member.create_time() for member in members)
        except psutil.Error:
            return None  # gone meanwhile
        leader = leader_of(members)
        _log.info("found consumer=%s run=%s pid=%s", number, name, leader.pid if leader else "none")
        return _Life(ConsumerId(int(number)), name, time.monotonic() - (time.time() - began), None, leader, members)

    def _look_at(self, life: _Life) -> None:
        if life.over_s is not None:
            return
        if life.child is not None:
            life.exit_code = life.child.poll()
            is_over = life.exit_code is not None
        else:
            is_over = life.leader is None or not _is_alive(life.leader)
        if is_over:
            life.over_s = time.monotonic()


def consume_command(config_file: Path, *more: str) -> Command:
    """Starts `kgs consume` as a member of its group."""
    return lambda consumer: [
        *kgs_command(),
        "consume",
        "--id",
        str(consumer),
        "--config",
        os.fspath(config_file.resolve()),
        *more,
    ]


def local_fleet(settings: Settings, options: FleetOptions) -> LocalFleet:
    """The processes of this machine, with this process's environment.

    Raises:
        PermanentError: the folder for logs cannot be made.
    """
    _log.info("consumers are processes of this machine logs=%s", options.log_dir)
    more = [] if options.consumers_end_with is None else ["--end-with", str(options.consumers_end_with)]
    return LocalFleet(settings, consume_command(options.config_file, *more), options.log_dir, os.environ)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _kill(members: Sequence[psutil.Process]) -> None:
    for member in members:
        try:
            member.kill()
        except psutil.Error:
            continue
