"""The processes of a demonstration: started together, looked after, ended together."""

import signal
import time
from collections.abc import Callable, Mapping

from kgs_core.adapters.child_processes import ChildProcess
from kgs_core.adapters.embedded_kafka import EmbeddedKafka
from kgs_core.adapters.stop_flag import StopFlag
from kgs_core.demo.scene import Scene

Say = Callable[[str], None]

RESTART_EVERY_S = 5.0
_END_TIMEOUT_S = 45.0
_POLL_S = 0.1
_LINES_SHOWN = 6
# A consumer that is told to end before it has put its handler in place ends by the signal itself, with nothing in hand.
_ENDED_IN_ORDER = (0, -signal.SIGTERM)


class Crew:
    """The generator and the consumers over a running broker; a context manager that kills what is left of them."""

    def __init__(self, scene: Scene, kafka: EmbeddedKafka, environ: Mapping[str, str], say: Say) -> None:
        self._kafka = kafka
        self._say = say
        servers = kafka.bootstrap_servers
        self.generator = ChildProcess(
            "generator", scene.generate_command(servers), scene.log_file("generator"), environ
        )
        self.consumers = {
            number: ChildProcess(
                f"consumer {number}", scene.consume_command(number), scene.log_file(f"consumer-{number}"), environ
            )
            for number in range(1, scene.consumers + 1)
        }
        self.generator_failed = False
        self._generator_may_end = False
        self._started: dict[int, float] = {}
        self._deaths: dict[int, float] = {}

    def start(self) -> None:
        """Starts everything at once: Spark takes its time, and the generator does not need it."""
        self.generator.start()
        for number in self.consumers:
            self._start(number)

    def look_after(self) -> None:
        """Reports what has died; starts consumers and the broker again. To be called every second or so."""
        for node in self._kafka.nodes:
            if node.pid is None:
                self._say("the broker has died: starting it again with its data")
                self._kafka.restart(node)
        if self.generator.pid is None and not (self._generator_may_end or self.generator_failed):
            self.generator_failed = True
            self._say(f"{_death(self.generator)}: no more records will come")
        now = time.monotonic()
        for number, consumer in self.consumers.items():
            if consumer.pid is None and number not in self._deaths:
                self._deaths[number] = max(now, self._started[number] + RESTART_EVERY_S)
                again = self._deaths[number] - now
                when = f"in {again:.0f} s" if again >= 1 else "at once"
                self._say(
                    f"{_death(consumer)}: starting it again {when}; the lake knows what it has, so nothing is lost or "
                    "doubled by it"
                )
        for number, due in list(self._deaths.items()):
            if now >= due:
                del self._deaths[number]
                self._start(number)

    def absence(self, number: int) -> str:
        """Why a consumer has no process."""
        due = self._deaths.get(number)
        return "ended" if due is None else f"dead, again in {max(0.0, due - time.monotonic()):.0f} s"

    def end_generator(self) -> None:
        """Asks the generator to end; it waits for its outstanding answers first."""
        self._generator_may_end = True
        self.generator.terminate()

    def end(self, hurry: StopFlag) -> list[str]:
        """Ends all of them in order; whatever still runs after 45 s, or when `hurry` is set, is killed.

        Returns:
            What did not go as it should, one line each.
        """
        crew = [self.generator, *self.consumers.values()]
        running = [child for child in crew if child.pid is not None]
        self.end_generator()
        for child in running:
            child.terminate()
        deadline = time.monotonic() + _END_TIMEOUT_S
        while any(child.pid is not None for child in crew) and not hurry.is_set and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        problems = []
        for child in crew:
            code = child.end(0)
            if child in running and code not in _ENDED_IN_ORDER:
                problems.append(f"{child.name} did not end in order ({_ending(code)}): see {child.log_file}")
        return problems

    def _start(self, number: int) -> None:
        self._started[number] = time.monotonic()
        self.consumers[number].start()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for child in (self.generator, *self.consumers.values()):
            child.kill()


def _death(child: ChildProcess) -> str:
    tail = child.log_tail(_LINES_SHOWN)
    said = "\n".join(f"    {line}" for line in tail.splitlines())
    return f"{child.name} has died ({_ending(child.exit_code)}); its log ends:\n{said}\n{child.name}"


def _ending(code: int | None) -> str:
    if code is None:
        return "unknown how"
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"
