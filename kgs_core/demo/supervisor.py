"""Supervisor of a demonstration's processes: broker, generator, and what controls the group; ended together."""

from collections.abc import Callable, Mapping

from kgs_core.demo.layout import Layout
from kgs_core.demo.supervised_process import death, end_in_order, last_words
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.system.closing import Closing
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.subprocesses import ChildProcess

Say = Callable[[str], None]

_END_TIMEOUT_S = 45.0
_DAY_S = 86_400


class GroupControl:
    """Control of the group, which starts its consumers; one that needs nothing, unless a method says otherwise.

    Attributes:
        invitation: what people may break, and what they will see then.
    """

    invitation: str

    @property
    def state(self) -> str:
        """How it is, in a few words."""
        return ""

    @property
    def failure(self) -> str:
        """Why it has ended for good, in one line; empty while it goes on, or will."""
        return ""

    def start(self) -> None:
        """Starts it; the consumers come by its decision."""

    def look_after(self) -> None:
        """Starts it again when it has died. To be called every second or so."""

    def end(self, _interrupt: StopFlag, /) -> list[str]:
        """Ends it, then its consumers, in order; kills them if the flag is set. Returns what went wrong."""
        return []

    def kill(self) -> None:
        """Ends whatever is left of it and its consumers, at once."""


class Supervisor(Closing):
    """The generator and the group over a running broker; a context manager that kills what is left of them."""

    def __init__(
        self,
        layout: Layout,
        bootstrap_servers: str,
        control: GroupControl,
        environ: Mapping[str, str],
        say: Say,
        *,
        kafka: EmbeddedKafka | None = None,
    ) -> None:
        """Starts nothing yet; without `kafka` the brokers are somebody else's to start again."""
        self._kafka = kafka
        self._say = say
        self._day_s = _DAY_S / layout.time_factor
        command = layout.generate_command(bootstrap_servers)
        self.generator = ChildProcess("generator", command, layout.log_file("generator"), environ)
        self.control = control
        self._generator_failure = ""
        self._generator_has_begun = False
        self._generator_may_end = False

    @property
    def failure(self) -> str:
        """Why one of them has ended for good, with its last words; empty while all go on, or will."""
        return self._generator_failure or self.control.failure

    def start(self) -> None:
        """Starts what controls the group."""
        self.control.start()

    def begin_load(self) -> None:
        """Starts the generator; a second call does nothing.

        Not before a consumer is there: else the load of a morning that nobody reads asks for more of them, and on few
        cores each that starts delays the first.
        """
        if self._generator_has_begun or self._generator_may_end:
            return
        self._generator_has_begun = True
        self.generator.start()
        self._say(f"generator started (pid {self.generator.pid}): flights of 2013, a day in {self._day_s:,.0f} s")

    def look_after(self) -> None:
        """Reports what has died; starts the broker and the control again. To be called every second or so."""
        if self._kafka is not None:
            for node in self._kafka.nodes:
                if node.pid is None:
                    self._say("the broker has died: starting it again with its data")
                    self._kafka.restart(node)
        is_meant_to_run = self._generator_has_begun and not self._generator_may_end
        if is_meant_to_run and self.generator.pid is None and not self._generator_failure:
            self._generator_failure = last_words(self.generator)
            self._say(f"{death(self.generator)}: no more records will come")
        self.control.look_after()

    def end_generator(self) -> None:
        """Asks the generator to end; it waits for its outstanding answers first."""
        self._generator_may_end = True
        self.generator.terminate()

    def end(self, interrupt: StopFlag) -> list[str]:
        """Ends all of them in order, as `GroupControl.end`."""
        self.end_generator()
        return [*self.control.end(interrupt), *end_in_order(self.generator, _END_TIMEOUT_S, interrupt)]

    def close(self) -> None:
        """Kill what has not ended in order."""
        self.generator.kill()
        self.control.kill()
