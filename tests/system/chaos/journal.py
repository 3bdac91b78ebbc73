"""What was done and seen, line by line as it happens: the run's timeline, and when nobody could be asked to read."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO


def now() -> float:
    """The clock that records, reports and commits are stamped with, seconds since 1970."""
    return time.time()  # noqa: TID251 - as above


@dataclass
class Excuse:
    """A time in which nobody can be asked to read.

    Attributes:
        end: None while it lasts.
    """

    why: str
    begin: float
    end: float | None = None


@dataclass
class Journal:
    """A run's journal.

    Attributes:
        excuses: see `Excuse`.
        say: gets each line, for people who look on.
    """

    folder: Path
    say: Callable[[str], None]
    excuses: list[Excuse] = field(default_factory=list)
    began: float = field(default_factory=now)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _file: TextIO | None = None

    def tell(self, what: str, **more: object) -> None:
        """Note it."""
        at = now()
        with self._lock:
            if self._file is None:
                self._file = (self.folder / "nemesis.jsonl").open("a", buffering=1)
            self._file.write(json.dumps({"at": round(at, 3), "what": what, **more}, default=str) + "\n")
        details = " ".join(f"{key}={value}" for key, value in more.items())
        self.say(f"{at - self.began:7.1f} s  {what} {details}".rstrip())

    def excused(self, why: str, after_s: float) -> Callable[[], None]:
        """From now on nobody can be asked to read; call what it gives when the cause has ended."""
        excuse = Excuse(why, now())
        self.excuses.append(excuse)

        def end() -> None:
            excuse.end = excuse.end or now() + after_s

        return end

    def is_excused(self, at: float) -> bool:
        return any(each.begin <= at and (each.end is None or at <= each.end) for each in self.excuses)

    def unexcused_s(self, begin: float, end: float) -> float:
        """How long of this nobody had an excuse."""
        left, at = 0.0, begin
        for each in sorted(self.excuses, key=lambda excuse: excuse.begin):
            if each.begin > at:
                left += max(0.0, min(each.begin, end) - at)
            at = max(at, each.end if each.end is not None else end)
            if at >= end:
                return left
        return left + max(0.0, end - at)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
