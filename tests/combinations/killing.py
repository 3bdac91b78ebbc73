"""Processes as greenlets: a failpoint is where one freezes, and may never wake up.

What is frozen for good has been killed there: nothing of it runs any more, no `finally` either, as after SIGKILL.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from greenlet import getcurrent, greenlet

_KILLED: list[greenlet] = []
"""Never collected: a greenlet that is runs its `finally`."""


class Act(greenlet):
    """What one process does in one step.

    Args:
        until: "point:n": where it freezes; empty: nowhere.
    """

    def __init__(self, call: Callable[[], object], until: str) -> None:
        super().__init__(call)
        self._point, _, times = until.partition(":")
        self._left = int(times or 1)

    def go_on(self) -> bool:
        """Whether it has ended; else it is frozen."""
        self.parent = getcurrent()
        self.switch()
        return self.dead

    def passes(self, point: str) -> None:
        """At a failpoint."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                self.parent.switch()

    def kill(self) -> None:
        """Where it is frozen."""
        _KILLED.append(self)


def failpoint(name: str, plan: object = None) -> None:
    """In the place of the real one."""
    act = getcurrent()
    if isinstance(act, Act):
        act.passes(name)


class AtOnce:
    """A pool whose threads are the caller's, so that a greenlet has all that its process does."""

    def __init__(self, *_: object, **__: object) -> None:
        """Of any size."""

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args))
        except Exception as e:  # noqa: BLE001 - as a pool does
            done.set_exception(e)
        return done

    def shutdown(self) -> None:
        """Nothing was started."""
