"""Named places where a test may kill or freeze the process, so that every "killed here, what then?" has its answer.

They act only where `KGS_FAILPOINTS=1`; a plan without it, and one that cannot be carried out, is refused.
`KGS_CRASH_AT=<name>[:n]` sends a signal to the whole process group the n-th time `name` is reached; which one says
`KGS_CRASH_SIGNAL` (KILL or STOP, default KILL). `KGS_CRASH_DIR` is where a file of that name is left first, as the
proof that the point was hit.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from kgs_core.errors import ConfigError

_BATCH_POINTS = ("fetched", "written", "before-commit", "after-dead-letter-commit", "after-commit")
_GROUP_POINTS = ("assignment-applied", "before-report", "after-report")
_CONTROL_POINTS = ("fenced", "before-write", "in-transaction", "after-write", "before-launch", "launched")
_REBALANCE_POINTS = ("measured", "assigned", "priced", "handed-over")
_LAKE_POINTS = (
    "adopted",  # one table has changed hands
    "file-written",  # one of the files of a batch
    *("intent-left", "entry-made"),  # of a combined commit
    *("before-columns", "columns-added"),
    *("route-claimed", "side-fenced", "after-side-commit"),  # of a topic with side tables
    *("judgement-announced", "judgement-fenced", "judgement-taken"),  # of dead letters that a replay might not find
    *("redrive-written", "redriven"),  # the rows of dead letters are in a file, and in the table
    *("end-noted", "redrives-refused", "rows-rewritten", "append-only-off", "rows-removed"),  # rows that end
    *("latest-read", "latest-written", "latest-merged"),  # a derived table: rows read, in files, merged
)
_PRUNE_POINTS = ("run-half-deleted", "looks-half-deleted")
FAILPOINTS = _BATCH_POINTS + _GROUP_POINTS + _CONTROL_POINTS + _REBALANCE_POINTS + _LAKE_POINTS + _PRUNE_POINTS
_SIGNALS = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}
_reached: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class FailpointPlan:
    """Plan of where to crash, and how. Picklable: Spark's Python workers do not share the driver's environment.

    Attributes:
        process_group: who gets the signal; the workers live in a group of their own.
    """

    name: str
    count: int
    directory: str
    signal_name: str
    process_group: int


def crash_plan() -> FailpointPlan | None:
    """The plan that the environment names; None without one, as always outside tests.

    Raises:
        ConfigError: failpoints are not switched on, or there is no such point, count, signal or directory.
    """
    at = os.environ.get("KGS_CRASH_AT")
    if not at:
        return None
    name, _, count = at.partition(":")
    how = os.environ.get("KGS_CRASH_SIGNAL", "KILL")
    directory = os.environ.get("KGS_CRASH_DIR")
    problems = []
    if os.environ.get("KGS_FAILPOINTS") != "1":
        problems.append(f"KGS_CRASH_AT={at}: failpoints are for tests: set KGS_FAILPOINTS=1, or unset KGS_CRASH_AT")
    if name not in FAILPOINTS:
        problems.append(f"KGS_CRASH_AT={at}: no such failpoint: name one of {', '.join(FAILPOINTS)}")
    if count and not (count.isdecimal() and int(count)):
        problems.append(f"KGS_CRASH_AT={at}: behind the colon stands how often it is reached: give 1 or more")
    if how not in _SIGNALS:
        problems.append(f"KGS_CRASH_SIGNAL={how}: no such signal: name one of {', '.join(_SIGNALS)}")
    if not directory:
        problems.append(f"KGS_CRASH_AT={at}: no place for the proof: set KGS_CRASH_DIR to a directory")
    if problems or not directory:
        raise ConfigError(problems)
    return FailpointPlan(name, int(count or 1), directory, _SIGNALS[how].name, os.getpgid(0))


def failpoint(name: str, plan: FailpointPlan | None = None) -> None:
    """Crash here if the plan (default: the environment's, see `crash_plan`) says so.

    Raises:
        ConfigError: see `crash_plan`.
    """
    plan = plan or crash_plan()
    if plan is None or plan.name != name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != plan.count:
        return
    Path(plan.directory, name).touch()
    number = signal.Signals[plan.signal_name]
    os.killpg(plan.process_group, number)
    if os.getpgid(0) != plan.process_group:
        os.kill(os.getpid(), number)
