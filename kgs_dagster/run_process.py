"""Which process carries out a run: written on the run when it begins, and asked about when it is to be ended."""

import json
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import dagster as dg

from kgs_core.errors import KgsError, TransientError
from kgs_core.fleet.host_process import HostProcess
from kgs_core.system.processes import RUN_ID

PROCESS = ".dagster/kgs-process"
"""Tags that begin so are not shown in lists of runs."""
MAX_RUNTIME = "dagster/max_runtime"
"""Run monitoring ends what takes longer, seconds. Of runs in a container that was started again nobody can tell."""
DAY_S = 86_400
ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
NOT_ENDED = tuple(status for status in dg.DagsterRunStatus if status not in ENDED)
CONTROL_LOG = "kgs_core.runtime.controller_loop"
"""Where a controller says what it does."""
_PROC = Path("/proc")


def process_tag(process: HostProcess) -> str:
    """A process as its run's tag says it."""
    return json.dumps(asdict(process))


def process_of(tags: Mapping[str, str]) -> HostProcess | None:
    """The process that a run's tags name; None before it has said so."""
    try:
        return HostProcess(**json.loads(tags[PROCESS]))
    except (KeyError, TypeError, ValueError):
        return None


def claim_run(instance: dg.DagsterInstance, run_id: str, tags: Mapping[str, str] | None = None) -> HostProcess:
    """Write this process on its run, before anything else: from here on it can be told whether the run lives.

    A Failure where the run was given up meanwhile, and perhaps another one has been started in its place.

    Raises:
        Failure: the run was given up meanwhile, and perhaps another one has been started in its place.
    """
    process = HostProcess.current({RUN_ID: run_id})
    with suppress(OSError):  # then nobody can end it but Dagster
        (_PROC / "self/comm").write_text(process_title(run_id))
    instance.add_run_tags(run_id, {**(tags or {}), PROCESS: process_tag(process)})
    run = instance.get_run_by_id(run_id)
    if run is not None and run.status in ENDED:
        raise dg.Failure(f"this run was marked as {run.status.value} before it began", allow_retries=False)
    return process


@contextmanager
def failures_named() -> Iterator[None]:
    """What a person can mend is reported in one line, and another try would give the same."""
    try:
        yield
    except KgsError as e:
        raise dg.Failure(str(e), allow_retries=False) from e


class DagsterLog(logging.Handler):
    """What this thread logs, in the log of a run or of a tick: another group's tick may be in another thread."""

    def __init__(self, log: dg.DagsterLogManager | logging.Logger) -> None:
        super().__init__()
        self._log = log
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Pass it on."""
        if record.thread == self._thread:
            self._log.log(record.levelno, record.getMessage())


@contextmanager
def logging_to(handler: logging.Handler, name: str) -> Iterator[None]:
    """While the block runs, what the logger of this name says goes to `handler`, too."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def fail_if(problems: Sequence[str]) -> None:
    """Fail by what is wrong, a line each, if anything is."""
    if problems:
        raise dg.Failure("\n".join(problems), allow_retries=False)


@contextmanager
def database(what: str) -> Iterator[None]:
    """Errors of Dagster's database, of gRPC and of Kubernetes, of whatever kind, as a TransientError."""
    try:
        yield
    except KgsError:
        raise
    except Exception as e:
        raise TransientError(f"Dagster: {what}: {first_line(e)}") from e


def first_line(error: BaseException) -> str:
    """The first line of what an error says; its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def process_title(run_id: str) -> str:
    """What the process of a run calls itself, as `ps` and `top` show it: 15 bytes at most."""
    return f"kgs-{run_id[:8]}"


def lives_here(process: HostProcess | None, run_id: str) -> bool | None:
    """Whether the process of a run lives on this host and is certainly that; None where it cannot be told.

    Tags can be written by anybody who may use Dagster. So they are not believed: the process must live, have begun when
    the tag says, and itself say that it is of this run.
    """
    gone = None if process is None else process.is_gone()
    if process is None or gone is None:
        return None
    return False if gone else (_title(process.pid) == process_title(run_id) or None)


def send_signal(process: HostProcess, run_id: str, number: signal.Signals) -> bool:
    """Signal the process of a run, if it is known for certain to be that; whether it was."""
    if not lives_here(process, run_id):
        return False
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
    return True


def ask_to_end(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Ask a run to end: its process itself, where it lives on this host.

    Dagster's code server asks a process by a `multiprocessing.Event`, and waits until it has woken up, with a lock in
    its hand that every start of a run needs. A process that hangs, or was killed just now, would hold up all runs.
    """
    process = process_of(run.tags)
    lives = lives_here(process, run.run_id)
    if process is None or lives is None:
        instance.run_coordinator.cancel_run(run.run_id)
        return
    instance.report_run_canceling(run)  # first: a run that has ended by then would count as one that ends
    send_signal(process, run.run_id, signal.SIGTERM)


def _title(pid: int) -> str | None:
    try:
        return (_PROC / str(pid) / "comm").read_text().rstrip("\n")
    except OSError:
        return None


def end_hung_run(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """Mark a run as failed that does not come to an end by itself, and end its process.

    Marked first: killed in between, its process goes on and is fenced by the next run, which nothing holds up any more.
    Where the process cannot be ended from here, Dagster's launcher is asked to; it takes nothing that has failed, so it
    is asked before.
    """
    process = process_of(run.tags)
    if lives_here(process, run.run_id) is None:
        with suppress(Exception):  # a launcher's own kinds: the run is given up all the same
            instance.run_coordinator.cancel_run(run.run_id)
    fresh = instance.get_run_by_id(run.run_id)
    if fresh is not None and fresh.status not in ENDED:
        instance.report_run_failed(fresh, why)
    if process is not None:
        send_signal(process, run.run_id, signal.SIGKILL)
