"""Threads that ask topics' tables beside the rounds: bounded in number, and none holds up another for ever.

Whatever a thread finds is only kept in its `Opening`; who began it takes it from there between two rounds, or never.
A thread that hangs cannot be ended. One that has been at work for `LATE_S` is *late*: it is left behind, does not count
any more, and its topic may be tried by one more thread beside it. Only where `MOST` hang and others wait can nothing be
opened any more; then, and not for one topic's sake, the process must be started anew (`stuck_reason`).
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from kgs_core.errors import ProtocolError
from kgs_core.kafka.topic_description import TopicDescription
from kgs_core.lake.rule.batch import TablePositions
from kgs_core.lake.topics.topic_table import TopicTable
from kgs_core.model import TopicPartition
from kgs_core.system.watchdog import stacks

SIDE_BY_SIDE = 16
MOST = 64
LATE_S = 60.0
TRIES_AT_ONCE = 2
END_S = 10.0
CALM_S = 1.0
LONGEST_CALM_S = 5.0
LASTS_S = 5.0
LASTS = "not read yet: its table is still being opened"
LATE = "not read yet: the opening of its table has not come back for a minute; it is tried again beside that"
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Opening:
    """One topic's table, asked by a thread: opened if need be, and where it stands.

    Attributes:
        found: the topic, as Kafka described it.
        partitions: those whose positions are asked for.
        open: opens the table.
        table: the table, open already, or opened.
        begun: when it was wanted first, on the steady clock.
        since: when a thread took it up; None: it waits for one.
        let_go: partitions that have been given up since; their positions count for nothing.
        positions: what it came to; None before, and where it failed.
        error: what it failed with.
    """

    topic: str
    found: TopicDescription
    partitions: frozenset[int]
    open: Callable[[], TopicTable] | None = None
    table: TopicTable | None = None
    begun: float = field(default_factory=time.monotonic)
    since: float | None = None
    let_go: frozenset[int] = frozenset()
    is_over: bool = False
    positions: TablePositions | None = None
    error: BaseException | None = None

    @property
    def opened(self) -> TopicTable:
        """The table.

        Raises:
            ProtocolError: it is not open.
        """
        if self.table is None:
            raise ProtocolError(f"topic {self.topic}: its table is not open")
        return self.table

    def ask(self) -> None:
        """Open the table if need be, and ask it; for the thread."""
        if self.open is not None:
            self.table = self.open()
        # Without partitions of ours nothing is asked: a topic that is only coming
        self.positions = self.opened.positions(self.partitions) if self.partitions else TablePositions()

    def lasts(self, now: float) -> str | None:
        """The reason why its partitions are not read yet; None where that is no news."""
        return LASTS if now - self.begun >= LASTS_S else None

    def is_late(self, now: float) -> bool:
        """Whether it has been at work for long, and has not come back."""
        return not self.is_over and self.since is not None and now - self.since >= LATE_S


class OpeningThreads:
    """Threads, one for each opening that is at work, and which topic each is about.

    With each topic more a client begins anew, and drops what it has gathered. So what is read is left in peace for as
    long as a batch takes to fill (`wait_time_s`), or topics that open one by one would keep the others from any commit.
    """

    def __init__(self, wait_time_s: float = 0.0) -> None:
        self._calm_s = CALM_S + min(wait_time_s, LONGEST_CALM_S)
        self._calm_until = 0.0
        self._changed = threading.Condition()
        self._wanted: dict[str, Opening] = {}
        self._left_behind: dict[str, list[Opening]] = {}
        self._waiting: deque[Opening] = deque()
        self._running: dict[Opening, threading.Thread] = {}
        self._started_at = time.monotonic()
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and no thread is at work."""
        with self._changed:
            return not self._waiting and not self._running

    @property
    def topics(self) -> list[str]:
        """Topics that are being opened."""
        return list(self._wanted)

    def of(self, topic: str) -> Opening | None:
        """The opening of a topic that is wanted and has not been taken."""
        return self._wanted.get(topic)

    def may_begin(self, topic: str) -> bool:
        """Whether the topic may be asked: by nobody now, nor by too many that do not come back."""
        still = [opening for opening in self._left_behind.pop(topic, ()) if not opening.is_over]
        if still:
            self._left_behind[topic] = still
        return topic not in self._wanted and len(still) < TRIES_AT_ONCE

    def begin(self, opening: Opening) -> None:
        """Have a thread take it up, at once or when one is free."""
        self._wanted[opening.topic] = opening
        with self._changed:
            if not self._waiting:
                self._started_at = time.monotonic()
            self._waiting.append(opening)
        self._start()

    def let_go(self, kept: Collection[TopicPartition], topics: Collection[str]) -> None:
        """Heed no answer about other partitions than `kept`, nor any at all about other topics than `topics`."""
        for topic, opening in list(self._wanted.items()):
            opening.let_go |= {p for p in opening.partitions if TopicPartition(topic, p) not in kept}
            if topic not in topics:
                del self._wanted[topic]
                with self._changed:
                    if opening in self._waiting:
                        self._waiting.remove(opening)

    def taken(self, wait_s: float, *, is_reading: bool = False) -> list[Opening]:
        """Those that are over or late, each once.

        Args:
            wait_s: how long those are waited for that have just begun; more than 0: what is read need not be left in
                peace.
            is_reading: something is read.
        """
        self._start()
        now = time.monotonic()
        if is_reading and not wait_s and now < self._calm_until:
            return []
        new = [opening for opening in self._wanted.values() if now - opening.begun < wait_s]
        if new:
            with self._changed:
                self._changed.wait_for(lambda: all(opening.is_over for opening in new), wait_s)
        now = time.monotonic()
        found = [opening for _, opening in sorted(self._wanted.items()) if opening.is_over or opening.is_late(now)]
        for opening in found:
            del self._wanted[opening.topic]
            self._calm_until = now + self._calm_s
            if not opening.is_over:
                with suppress(OSError):  # no file can be opened, perhaps that is what is wrong
                    text = stacks().decode(errors="replace")
                    _log.warning("topic %s: not open after %g s; each thread:\n%s", opening.topic, LATE_S, text)
                self._left_behind.setdefault(opening.topic, []).append(opening)
        return found

    def _start(self) -> None:
        """Start what may be started: looked at now and then, since a thread that hangs makes room only by time."""
        with self._changed:
            now = time.monotonic()
            in_time = sum(not opening.is_late(now) for opening in self._running)
            while self._waiting and in_time < SIDE_BY_SIDE and len(self._running) < MOST and not self._is_closed:
                opening = self._waiting.popleft()
                opening.since = self._started_at = now
                # No pool: the end of the process would wait for a thread of it that hangs
                thread = threading.Thread(target=self._run, args=[opening], name=f"open-{opening.topic}", daemon=True)
                self._running[opening] = thread
                thread.start()
                in_time += 1

    def stuck_reason(self, now: float, timeout_s: float) -> str | None:
        """Why no topic can be opened any more, so that the process must end; None while one can.

        `timeout_s`: for how long no thread could be started, though topics wait.
        """
        with self._changed:
            if not self._waiting or now - self._started_at <= max(timeout_s, 2 * LATE_S):
                return None
            names = ", ".join(sorted({opening.topic for opening in self._running})[:5])
            return f"{len(self._running)} openings of topics do not come back, no other can begin: {names}, ..."

    def close(self) -> None:
        """Begin nothing more, and wait for what is at work, but not for what hangs."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            if not self._changed.wait_for(lambda: not self._running, END_S):
                hung = ", ".join(sorted(opening.topic for opening in self._running))
                _log.warning("the end does not wait for topics that are still being opened: %s", hung)

    def _run(self, opening: Opening) -> None:
        try:
            opening.ask()
        except BaseException as e:  # noqa: BLE001 - of any library or of the user's code; a panic of Rust is no Exception
            opening.error = e
        with self._changed:
            opening.is_over = True
            self._running.pop(opening)
            self._changed.notify_all()
        self._start()
