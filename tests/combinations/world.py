"""The real sink under a history: processes are greenlets, a failpoint is where one freezes and may never wake up.

What is frozen for good has been killed there: nothing of it runs any more, no `finally` either, as after SIGKILL.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from greenlet import getcurrent, greenlet

from kgs_core.adapters.ingest import arrow_task, fetch, reading_ahead, redrive, rounds
from kgs_core.adapters.ingest.arrow_task import ArrowRequest, TaskContext
from kgs_core.adapters.ingest.formats import by_schema
from kgs_core.adapters.ingest.local_batch_runner import LocalBatchRunner
from kgs_core.adapters.ingest.rounds import Ingest
from kgs_core.adapters.ingest.topic_opener import TopicOpener
from kgs_core.adapters.ingest.topic_state import TopicState
from kgs_core.adapters.lake import adoption, audit, combined_commit, latest_by_key, maintenance, recovery
from kgs_core.adapters.lake.factory import open_lake
from kgs_core.adapters.lake.materialize import materialize_lake
from kgs_core.adapters.lake.storage import Storage
from kgs_core.adapters.registry import client as registry_client
from kgs_core.adapters.system import failpoints
from kgs_core.config import Settings, resolve_tables
from kgs_core.consumer.round.questions import ReadResult
from kgs_core.errors import ConfigError, KgsError
from tests.combinations import case as steps
from tests.combinations.stand_ins import LogClient, MemoryKafka, RegistryAnswers, RegistryConnection, rules_of

LOOK_S = 100.0
_NUMBERS = count()
_KILLED: list[greenlet] = []
"""Never collected: a greenlet that is runs its `finally`."""


class Act(greenlet):
    """What one process does in one step, and where it freezes."""

    def __init__(self, call: Callable[[], object], until: str) -> None:
        super().__init__(call)
        point, _, times = until.partition(":")
        self.until, self.left = point, int(times or 1)

    def passes(self, point: str) -> None:
        """At a failpoint."""
        if point == self.until:
            self.left -= 1
            if not self.left:
                self.parent.switch()


def _failpoint(name: str, plan: object = None) -> None:
    act = getcurrent()
    if isinstance(act, Act):
        act.passes(name)


class _AtOnce:
    """A pool whose threads are the caller's."""

    def __init__(self, *_: object, **__: object) -> None:
        """Of any size."""

    def submit(self, call: Callable[..., Any], *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args))
        except Exception as e:
            done.set_exception(e)
        return done

    def shutdown(self) -> None:
        """Nothing was started."""


class _Runner(LocalBatchRunner):
    """Reads what is there, and waits for nothing."""

    most, waits = 0, False

    def read_arrow(self, request: ArrowRequest) -> ReadResult:
        self.interrupt()
        wait_s = 300.0 if self.waits else 0.0
        return super().read_arrow(replace(request, batch_bytes=self.most or 1_000_000, wait_time_s=wait_s))


class Process:
    """A consumer's process, which owns every partition of what it can open."""

    def __init__(self, world: "World") -> None:
        settings, self._world = world.settings(), world
        self._kafka, self._specs = world.kafka, resolve_tables(settings, world.rule.topics)
        offsets = SimpleNamespace(report=lambda _: None)
        lake = open_lake(settings.lake, "7")
        self._opener = TopicOpener(settings, lake, world.kafka, offsets, lambda *_: None)
        self.client = fetch.FetchSession({"bootstrap.servers": "memory:1"})
        storage = Storage(settings.lake.root)
        self._runner = _Runner(TaskContext({"client": self}, storage, None), settings.consumer)
        self._topics: dict[str, TopicState] = {}
        self._ingest = Ingest(self._topics, settings.consumer, self._runner, world.kafka, offsets)

    def look(self) -> None:
        """Open topics that are not open, or were made again; what is refused is left for the next look."""
        for topic, found in self._kafka.describe(self._world.rule.topics).items():
            state = self._topics.get(topic)
            if state is not None and state.table.ids.topic_id == found.topic_id:
                continue
            try:
                opened = TopicState(self._opener.open(self._specs[topic], found.topic_id, found.partitions))
                opened.own(frozenset(range(found.partitions)))
            except KgsError as e:
                self._world.said.append(f"{topic} is not opened: {e}")
            else:
                self._topics[topic] = opened

    def round(self, step: steps.Round) -> None:
        """See `case.Round`."""
        if step.looks:
            self._world.now += LOOK_S
            self.look()
        self._runner.most, self._runner.waits = step.most, step.waits
        if self._topics:
            self._ingest.round(lambda: not step.ahead)
        self._world.said += [
            f"{topic}:{p} stands still: {stop.reason}"
            for topic, state in self._topics.items()
            for p, stop in state.progress.stops.items()
        ]

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        """Of what is open."""
        return {(t, p): o for t, state in self._topics.items() for p, o in state.progress.positions.items()}


class World:
    """One case at work.

    Attributes:
        editions: of the rule that processes have had.
        said: what was refused, and why partitions stand still.
    """

    def __init__(self, rule: steps.Rule, root: Path) -> None:
        self.rule, self.root = rule, root
        self.kafka, self.registry = MemoryKafka(rule), RegistryAnswers(rule.format)
        self.group, self.heir = 1, 0
        self.edition, self.editions = steps.OLD, {steps.OLD}
        self.said: list[str] = []
        self.has_redriven = False
        self.now = 0.0
        self._processes: dict[int, Process] = {}
        self._frozen: list[tuple[Act, int | None]] = []

    def settings(self) -> Settings:
        """Of a process that starts now; each has its own connection to the registry."""
        return Settings.model_validate(
            {
                "group": f"g{self.group}",
                "kafka": {"bootstrap_servers": "memory:1"},
                "lake": {"root": str(self.root), "commit": self.rule.commit, "checkpoint_interval": 5},
                "consumer": {"wait_time_s": 0.0},
                "registry": {"url": f"http://registry:1/{next(_NUMBERS)}"},
                "topics": rules_of(self.rule, self.edition),
            }
        )

    def do(self, step: steps.Step) -> None:
        """Carry out one step."""
        match step:
            case steps.Send(records=records):
                for record in records:
                    self.kafka.send(record)
            case steps.Round(who=who, until=until):
                self._act(lambda: self._process(who).round(step), until, who)
            case steps.Restart(who=who):
                self._processes.pop(who, None)
            case steps.Thaw():
                if self._frozen:
                    self._go_on(*self._frozen.pop(0))
            case steps.Registry(how=how):
                self.registry.how = how
            case steps.Register():
                self.registry.known.add(steps.NEW)
            case steps.Change():
                self.edition = steps.NEW
                self.editions.add(steps.NEW)
            case steps.MakeAgain(topic=topic):
                self.kafka.make(topic)
            case _:
                self._act(lambda: self._command(step), getattr(step, "until", ""))

    def _command(self, step: steps.Step) -> None:
        """What a person, or a timer, runs; a refusal is an answer."""
        try:
            match step:
                case steps.Redrive():
                    self.redrive()
                case steps.Materialize():
                    self.materialize()
                case steps.Maintain(later=later):
                    maintenance.maintain_lake(self.settings(), done=lambda _: None)
                    if later:
                        self._expire()
                case steps.Accept(topic=topic):
                    recovery.Acceptance(self.settings()).accept_topic(topic)
                case steps.Adopt():
                    self.adopt()
        except KgsError as e:
            self.said.append(f"{step!r}: {e}")

    def _expire(self) -> None:
        """What a later maintenance would do to the log, with deltalake's bounds on time."""
        for log in self.root.glob("*/_delta_log"):
            if (last := log / "_last_checkpoint").exists():
                version = json.loads(last.read_text())["version"]
                for entry in log.glob("*.json"):
                    if int(entry.stem) < version:
                        entry.unlink()

    def redrive(self) -> None:
        """Of the one table."""
        self.has_redriven = True
        redrive.Redrive(self.settings(), "t").run()

    @property
    def has_unknown_route(self) -> bool:
        """Whether rows of a topic that is gone go by a route that kgs.yaml no longer has: its letters stay."""
        return self.rule.route and len(self.editions) > 1 and any(len(lives) > 1 for lives in self.kafka.lives.values())

    def redrive_all(self) -> list[str]:
        """The problem, if there is one."""
        try:
            self.redrive()
        except KgsError as e:
            return [] if self.has_unknown_route else [f"redrive: {e}"]
        return []

    def materialize(self) -> list[str]:
        """The problems."""
        found: list[str] = []
        if self.rule.newest:
            materialize_lake(self.settings(), lambda done: found.append(done.problem))
        return [problem for problem in found if problem]

    def adopt(self) -> None:
        """Begin to give the group another name, or go on with it."""
        old = f"g{self.heir or self.group}"
        if not self.heir:
            self.heir, self.group = self.group, self.group + 1
        try:
            adopting = adoption.GroupAdoption(self.settings(), old)
            pending = adopting.pending(())
        except ConfigError:  # there is nothing yet
            self.group, self.heir = self.heir, 0
            raise
        for table in pending:
            adopting.carry_out(table)
        self.heir = 0

    def _process(self, who: int) -> Process:
        if who not in self._processes:
            self._processes[who] = Process(self)
        return self._processes[who]

    def _act(self, call: Callable[[], object], until: str, who: int | None = None) -> None:
        self._go_on(Act(call, until), who)

    def _go_on(self, act: Act, who: int | None) -> None:
        act.parent = getcurrent()
        act.switch()
        if not act.dead:
            self._frozen.append((act, who))
            if who is not None:
                self._processes.pop(who, None)  # another is started in its place

    def finish(self) -> list[str]:
        """Whatever is frozen is dead; all works again, and consumers read to the end. What hinders them, if anything."""
        self._kill()
        self.registry.how = "answers"
        self.registry.known.add(steps.NEW)
        if self.heir:
            self.adopt()
        last = self.edition  # a side table may be ahead by the route of before: then consumers by that one go first
        for self.edition in (last, last, *sorted(self.editions), last):
            self.now += 10_000.0
            process = Process(self)
            self.said.clear()
            self._accept_all()
            if self._drained(process) and self.edition == last:
                return []
        return [f"not read to the end: {process.positions}", *self.said]

    def _accept_all(self) -> None:
        for topic in self.rule.topics:
            if len(self.kafka.lives[topic]) > 1:
                with suppress(KgsError):  # it was accepted, or never read
                    recovery.Acceptance(self.settings()).accept_topic(topic)

    def _drained(self, process: Process) -> bool:
        """Whether everything is read, once rounds get no further."""
        before = None
        while process.positions != before:
            before = process.positions
            process.round(steps.Round())
        return self._is_read(process)

    def _is_read(self, process: Process) -> bool:
        logs = {(t, p): len(log) for t in self.rule.topics for p, log in enumerate(self.kafka.log(t))}
        return process.positions == logs

    def _kill(self) -> None:
        _KILLED.extend(act for act, _ in self._frozen)
        self._frozen.clear()
        self._processes.clear()

    def sleep(self, seconds: float) -> None:
        """Nobody else would do anything meanwhile."""
        self.now += seconds

    def audit(self) -> Any:
        """What `kgs audit` says."""
        return audit.audit_lake(self.settings(), with_log=False)


@contextmanager
def patched(world: World) -> Iterator[None]:
    """The stand-ins in their places, and failpoints that freeze."""
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + world.now, time=time.time, sleep=world.sleep)
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("kgs_core.") and getattr(module, "failpoint", None) is failpoints.failpoint:
                if module is not failpoints:
                    patch.setattr(module, "failpoint", _failpoint)
        for module in (rounds, registry_client, by_schema, combined_commit):
            patch.setattr(module, "time", clock)
        for module in (rounds, reading_ahead):
            patch.setattr(module, "ThreadPoolExecutor", _AtOnce)
        for module in (adoption, maintenance, recovery):
            patch.setattr(module, "KafkaAdmin", lambda _: world.kafka)
            patch.setattr(module, "admin_client", lambda _: None)
        if world.rule.small:
            patch.setattr(latest_by_key, "MERGE_BYTES", 1)
            patch.setattr(redrive, "MOST_LETTERS", 1)
        patch.setattr(fetch, "Consumer", lambda _: LogClient(world.kafka))
        patch.setattr(arrow_task, "session", lambda _, config, __: config["client"].client)
        patch.setattr(registry_client, "SchemaRegistryClient", lambda _: RegistryConnection(world.registry))
        try:
            yield
        finally:
            world._kill()
            gc.enable()  # a worker that is frozen in the middle of a batch has it paused
