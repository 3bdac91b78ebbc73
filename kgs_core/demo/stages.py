"""The stages of a demonstration: first rows, running, the generator's end, catching up."""

import time
from collections.abc import Callable

from kgs_core.demo.display import Display
from kgs_core.demo.observer import Observer
from kgs_core.demo.snapshot import DemoSnapshot
from kgs_core.demo.supervisor import Supervisor
from kgs_core.system.shutdown import StopFlag

_TICK_S = 0.5
_CONSUMERS_TIMEOUT_S = 300.0
"""Of what may have to wait for consumers to start: the first rows, and those of a consumer that was killed."""
_GENERATOR_TIMEOUT_S = 75.0
_WIND_DOWN_S = 10.0
_FOREVER = float("inf")


class Stages:
    """Plays one stage after the other; ends early when the flag is set, or when a child has ended for good."""

    def __init__(self, supervisor: Supervisor, observer: Observer, display: Display, stop: StopFlag) -> None:
        self._supervisor = supervisor
        self._observer = observer
        self._display = display
        self._stop = stop
        self.has_begun = False

    def play(self, seconds: float | None) -> list[str]:
        """All stages, `seconds` from the first row on, which is waited for 300 s; None: no end. Returns problems."""
        problems = self._play(seconds)
        return [self._supervisor.failure] if self._supervisor.failure and not self._is_stopped() else problems

    def _play(self, seconds: float | None) -> list[str]:
        arrived = self._watch(
            "starting", lambda now: now.has_rows, _FOREVER if seconds is None else _CONSUMERS_TIMEOUT_S
        )
        if arrived is None:
            return [] if self._is_over() else [f"no row in the lake within {_CONSUMERS_TIMEOUT_S:.0f} s"]
        self.has_begun = True
        self._display.say(f"first rows in the lake, {arrived.elapsed_s:.0f} s after the start")
        self._watch("running", lambda _: False, _FOREVER if seconds is None else seconds)
        if self._is_over():
            return []
        self._display.say("time is up: ending the generator, then the consumers catch up")
        self._supervisor.end_generator()
        last = self._watch("ending the generator", _has_ended, _GENERATOR_TIMEOUT_S)
        if self._is_over():
            return []
        if last is None:
            return ["the generator gave no final figures: what it produced is not known"]
        caught_up = self._watch("catching up", lambda now: now.lake.lag == 0, _CONSUMERS_TIMEOUT_S)
        if caught_up is None and not self._is_over():
            return [f"the consumers have not caught up within {_CONSUMERS_TIMEOUT_S:.0f} s"]
        return []

    def wind_down(self, interrupt: StopFlag) -> None:
        """After an interruption: no more records, and a moment to catch up, so that the audit can prove something."""
        self._stop = interrupt
        self._supervisor.end_generator()
        self._watch("ending the generator", _has_ended, _WIND_DOWN_S)
        self._watch("catching up", lambda now: now.lake.lag == 0, _WIND_DOWN_S)

    def _watch(self, stage: str, done: Callable[[DemoSnapshot], bool], timeout_s: float) -> DemoSnapshot | None:
        """Shows one snapshot after the other until `done`; None when time is up or all is over first."""
        began = time.monotonic()
        text = stage
        while not self._is_over():
            gone = time.monotonic() - began
            if stage == "running" and timeout_s != _FOREVER:
                text = f"running {gone:.0f} of {timeout_s:g} s"
            self._supervisor.look_after()
            snapshot = self._observer.look(text)
            for line in snapshot.news:
                self._display.say(line)
            if snapshot.can_take_load:
                self._supervisor.begin_load()
            if done(snapshot):
                self._display.show(snapshot, now=True)
                return snapshot
            if gone >= timeout_s:
                return None
            self._display.show(snapshot)
            self._stop.wait(min(_TICK_S, timeout_s - gone))
        return None

    def _is_over(self) -> bool:
        """Whether there is nothing to wait for: somebody wants the end, or a child has ended for good."""
        return self._is_stopped() or bool(self._supervisor.failure)

    def _is_stopped(self) -> bool:
        return self._stop.is_set  # a signal sets it between any two lines


def _has_ended(now: DemoSnapshot) -> bool:
    """Whether the generator has given its final figures."""
    return now.produced is not None and now.produced.finished
