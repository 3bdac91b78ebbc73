"""CPU and memory of one benchmarked program with all its processes, seen from outside."""

import threading
import time
from types import TracebackType

import psutil

from bench.figures import ROLES
from kgs_core.system.subprocesses import session_members
from kgs_core.system.usage import usage_of

_SAMPLE_S = 0.25
_QUIET_STEP_S = 0.5
_QUIET_SHARE = 0.1


def family_cpu_s(session: int) -> float:
    """User and system seconds of all processes of a session so far; those that have ended count by their parents."""
    return usage_of(session_members(session)).cpu_s


def family_rss_bytes(session: int) -> dict[str, int]:
    """Resident memory by role: the driver, its JVM, and Spark's Python workers (their daemon among them)."""
    found = dict.fromkeys(ROLES, 0)
    for process in session_members(session):
        try:
            name, rss = process.name(), process.memory_info().rss
        except psutil.Error:
            continue
        if process.pid == session:
            found["driver"] += rss
        elif name == "java":
            found["jvm"] += rss
        elif name.startswith("python"):
            found["worker"] += rss
    return found


def wait_quiet(session: int, timeout_s: float) -> bool:
    """Whether the family came to rest: less than a tenth of a core over half a second.

    A client that has filled its queue is at rest; measured from there on, as much is fetched as is consumed.
    """
    deadline = time.monotonic() + timeout_s
    before, since = family_cpu_s(session), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(_QUIET_STEP_S)
        now, at = family_cpu_s(session), time.monotonic()
        if (now - before) / (at - since) < _QUIET_SHARE:
            return True
        before, since = now, at
    return False


class MemoryWatch:
    """A context manager that samples memory four times a second.

    Attributes:
        highest: by role, bytes; the highest of each, not all of one moment.
    """

    def __init__(self, session: int) -> None:
        self.highest = dict.fromkeys(ROLES, 0)
        self._session = session
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def _run(self) -> None:
        while True:
            for role, rss in family_rss_bytes(self._session).items():
                self.highest[role] = max(self.highest[role], rss)
            if self._stop.wait(_SAMPLE_S):
                return

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
