"""Upkeep of derived tables by the consumer that reads partition 0 of a topic: a thread of its own beside the rounds.

No batch waits for it, and no failure here ends a consumer: the lag says it (`kgs status`). Killed or handed over, the
next owner goes on where the last commit left off; for a moment both may do it, and one is refused. What is no
longer owned is looked at once more, so that a group that ends, or sleeps, leaves nothing behind.

Where no log has a new entry, nothing is opened: that would read each log from its checkpoint on, again and again.
"""

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from kgs_core.config import Settings, TableSpec, TopicRule
from kgs_core.errors import PortError, one_line
from kgs_core.lake.delta.log_store import log_store
from kgs_core.lake.derived.history import derived_table
from kgs_core.lake.files.ended_rows import ended_names
from kgs_core.lake.files.storage import Storage

LAST_PASS_S = 20.0
LONGEST_WAIT_S = 300.0
"""Behind a failure: what fails may have read the whole table for it."""
_NICE = 10
_PASSES = 3
"""In the time that the lag may be: one waits, one works, and one may fail."""
_log = logging.getLogger(__name__)
_Ends = dict[str, tuple[int, str] | None]
"""Table -> number and stamp of the last entry of its log."""
_Seen = tuple[_Ends, tuple[str, ...]]
"""Beside the logs, what was decided of records whose rows may be in the derived table alone."""


class NewestRowsUpkeep:
    """The thread; none where no rule has derived tables."""

    def __init__(self, settings: Settings, owned: Callable[[], Collection[TableSpec]]) -> None:
        """`owned`: tables of the topics whose partition 0 the consumer owns now; asked in the thread."""
        self._settings = settings
        self._owned = owned
        self._stop = threading.Event()
        self._before: dict[str, TableSpec] = {}
        self._problems: dict[str, str] = {}
        self._done: dict[str, _Seen] = {}
        self._failures = Counter[str]()
        self._due: dict[str, float] = {}
        self._every_s = min(filter(None, map(_every_s, settings.topics)), default=0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Work beside the block, and for `LAST_PASS_S` after it at most."""
        if not self._every_s:
            yield
            return
        thread = threading.Thread(target=self._run, name="newest-rows", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(LAST_PASS_S)

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # a system without niceness of threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while not self._stop.wait(self._every_s):
            self.look(only_due=True)
        self.look()

    def look(self, *, only_due: bool = False) -> None:
        """Bring everything up to date that is owned, or was at the last look.

        `only_due`: not what was looked at a third of its `max_lag_s` ago; what fails again and again waits longer.
        """
        now = {table: spec for spec in self._owned() for table in spec.derived_tables}
        for table, spec in {**self._before, **now}.items():
            if only_due and table in now and time.monotonic() < self._due.get(table, 0.0):
                continue
            try:
                problem = ""
                seen = self._seen(spec, table, self._done.get(table, ({}, ()))[0])
                if seen != self._done.pop(table, None):
                    derived_table(self._settings, spec, table).materialize()
                self._done[table] = seen
            except BaseException as e:  # noqa: BLE001 - a panic of Rust is no `Exception`; all others go on, the lag tells
                problem = one_line(e)
            if problem and problem != self._problems.get(table):
                _log.warning("table=%s newest rows are not up to date: %s", table, problem)
            self._problems[table] = problem
            self._failures[table] = self._failures[table] + 1 if problem else 0
            wait_s = _every_s(spec.rule)
            self._due[table] = time.monotonic() + max(
                wait_s, min(wait_s * 2.0 ** self._failures[table], LONGEST_WAIT_S)
            )
        self._before = now

    def _seen(self, spec: TableSpec, table: str, known: _Ends) -> _Seen:
        """Of all logs that tell what is to be done; the table's own too, since somebody may delete it."""
        storage, found = Storage.of(self._settings.lake), _Ends()
        for name in (spec.table, spec.dead_letters_table, table):
            last = known.get(name)
            found[name] = max(log_store(storage, name).since(last[0] if last else None).stamps.items(), default=None)
        return found, ended_names(storage, spec.table)


def newest_rows_lags(
    settings: Settings, specs: Iterable[TableSpec], problems: list[str]
) -> dict[str, tuple[float | None, float]]:
    """Derived table -> its lag, s, None where that is not known, and the rule's `max_lag_s`.

    `problems`: is given a line for each table that could not be looked at.
    """
    found: dict[str, tuple[float | None, float]] = {}
    for spec in specs:
        rule = spec.rule.newest_rows
        if rule is None or spec.latest_table in found:
            continue
        for name in spec.derived_tables:
            found[name] = (None, rule.max_lag_s)
            try:
                found[name] = (derived_table(settings, spec, name).lag_s(time.time()), rule.max_lag_s)
            except PortError as e:
                problems.append(str(e))
            except Exception as e:  # noqa: BLE001 - deltalake and the stores' clients raise what they like
                problems.append(f"table {name}: {one_line(e)}")
    return found


def _every_s(rule: TopicRule) -> float:
    return rule.newest_rows.max_lag_s / _PASSES if rule.newest_rows is not None else 0.0
