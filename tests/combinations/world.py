"""The real sink under a history, and the judgement in the end."""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgs_core.errors import KgsError
from kgs_core.ingest.driver import reading_ahead, rounds
from kgs_core.ingest.formats import by_schema
from kgs_core.ingest.replay import letter_records, redrive
from kgs_core.ingest.worker import arrow_task
from kgs_core.lake.delta import combined_commit
from kgs_core.lake.derived import latest_by_key
from kgs_core.lake.files import layout
from kgs_core.lake.handover import adoption
from kgs_core.lake.topics import maintenance, recovery
from kgs_core.lake.topics.factory import open_lake
from kgs_core.registry import client as registry_client
from kgs_core.system import failpoints
from tests import object_fetch
from tests.combinations import case as steps
from tests.combinations.commands import Operator
from tests.combinations.judge import Judge, tables_in
from tests.combinations.killing import Act, AtOnce, failpoint
from tests.combinations.process import Process
from tests.combinations.stand_ins import LogClient, MemoryKafka, RegistryAnswers, RegistryConnection
from tests.combinations.values import key_of
from tests.group_offsets import MemoryOffsets

LOOK_S, LONG_S = 130.0, 10_000.0
"""Time between two looks of a consumer after its topics; and time after which all that waits is tried again."""


class World:
    def __init__(self, rule: steps.Rule, root: Path) -> None:
        self.rule = rule
        self.kafka, self.registry = MemoryKafka(rule), RegistryAnswers(rule.format)
        self.now = 0.0
        self._root = root
        self._operator = Operator(rule, root)
        self._said: list[str] = []
        self._processes: dict[int, Process] = {}
        self._frozen: list[Act] = []
        self._at_once: Mapping[type[steps.Step], Callable[[Any], None]] = {
            steps.Send: lambda step: [self.kafka.send(record) for record in step.records],
            steps.Restart: lambda step: self._processes.pop(step.who, None),
            steps.Thaw: lambda _: self._go_on(self._frozen.pop(0)) if self._frozen else None,
            steps.Registry: lambda step: setattr(self.registry, "how", step.how),
            steps.Register: lambda _: self.registry.known.add(steps.NEW),
            steps.Change: lambda _: self._operator.change(),
            steps.MakeAgain: lambda step: self.kafka.make(step.topic),
            steps.Round: self._round,
        }
        self._commands: Mapping[type[steps.Step], Callable[[Any], object]] = {
            steps.Redrive: lambda _: self._operator.redrive(),
            steps.Erase: lambda step: self._operator.erase(step.key),
            steps.Materialize: lambda _: self._operator.materialize(),
            steps.Maintain: lambda step: self._operator.maintain(later=step.later),
            steps.Accept: lambda step: self._operator.accept(step.topic),
            steps.Adopt: lambda _: self._operator.adopt(),
        }

    def do(self, step: steps.Step) -> None:
        if type(step) in self._at_once:
            self._at_once[type(step)](step)
        else:
            self._go_on(Act(lambda: self._command(step), getattr(step, "until", "")))

    def _command(self, step: steps.Step) -> None:
        with suppress(KgsError):  # a refusal is an answer
            self._commands[type(step)](step)

    def _round(self, step: steps.Round) -> None:
        if step.who not in self._processes:
            self._processes[step.who] = self._started()
        process = self._processes[step.who]
        self.now += LOOK_S if step.looks else 0
        if not self._go_on(Act(lambda: process.round(step), step.until)):
            del self._processes[step.who]  # another is started in its place

    def _started(self) -> Process:
        return Process(self._operator.settings(), self.kafka, self._said.append)

    def _go_on(self, act: Act) -> bool:
        has_ended = act.go_on()
        if not has_ended:
            self._frozen.append(act)
        return has_ended

    def problems(self) -> list[str]:
        """What is wrong when all works again, and all is read."""
        self._finish()
        if self._said:
            return self._said
        operator = self._operator
        for key in sorted(operator.erased):
            operator.erase(key)
        erased = {key_of(self.rule, key) for key in operator.erased}
        judge = Judge(self.kafka, operator.editions, erased)
        found = judge.faults(tables_in(self._root), may_be_redriven=operator.has_redriven)
        # Rows of a topic that is gone may go by a route that kgs.yaml no longer has: its letters stay
        may_stay = self.rule.route and len(operator.editions) > 1 and self.kafka.has_made_again
        # Where a rule masks fields, redrive reads the records of letters again
        may_stay |= bool(self.rule.mask) and self.kafka.has_made_again
        found += operator.problems_of_redrive(may_be_refused=may_stay)
        found += operator.materialize()
        tables = tables_in(self._root)
        found += judge.faults(tables, may_be_redriven=True, is_redriven=not may_stay)
        found += judge.faults_of_newest(tables) if self.rule.newest else []
        audited = operator.audit()
        return found if audited.ok else [*found, f"audit: {audited}"]

    def _finish(self) -> None:
        """Whatever is frozen is dead, all works again, and consumers read to the end; `_said` has what hinders them."""
        self.kill()
        self.registry.how = "answers"
        self.registry.known.add(steps.NEW)
        self._operator.end_adoption()
        last = self._operator.edition
        # A side table may be ahead by the route of before: then consumers by that one go first
        for edition in (last, last, *sorted(self._operator.editions), last):
            self._operator.edition = edition
            self.now += LONG_S
            process = self._started()
            self._said.clear()
            self._accept_all()
            self._drain(process)
            if process.has_read_all and edition == last:
                self._said.clear()
                return
        self._said.insert(0, f"not read to the end: {process.positions}")

    def _accept_all(self) -> None:
        for topic in self.rule.topics:
            with suppress(KgsError):  # it is the first of its name, was accepted, or never read
                self._operator.accept(topic)

    @staticmethod
    def _drain(process: Process) -> None:
        before = None
        while process.positions != before:
            before = process.positions
            process.round(steps.Round())

    def kill(self) -> None:
        for act in self._frozen:
            act.kill()
        self._frozen.clear()
        self._processes.clear()

    def sleep(self, seconds: float) -> None:
        """Nobody else would do anything meanwhile."""
        self.now += seconds


def problems_of(case: steps.Case, root: Path) -> list[str]:
    """What is wrong in the end, of a lake in this folder, which is not there yet."""
    world = World(case.rule, root)
    with _patched(world):
        for step in case.steps:
            world.do(step)
        return world.problems()


@contextmanager
def _patched(world: World) -> Iterator[None]:
    """The stand-ins in their places, and failpoints that freeze."""
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + world.now, time=time.time, sleep=world.sleep)  # noqa: TID251
    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            is_ours = name.startswith("kgs_core.") and module is not failpoints
            if is_ours and getattr(module, "failpoint", None) is failpoints.failpoint:
                patch.setattr(module, "failpoint", failpoint)
        for module in (rounds, registry_client, by_schema, combined_commit):
            patch.setattr(module, "time", clock)
        for module in (rounds, reading_ahead):
            patch.setattr(module, "ThreadPoolExecutor", AtOnce)
        for module in (adoption, maintenance, recovery, redrive):
            patch.setattr(module, "admin_of", lambda _: world.kafka)
        patch.setattr(letter_records, "load_log", world.kafka.load)
        patch.setattr(open_lake, "__defaults__", ("", world.rule.commit))
        patch.setattr(recovery, "GroupOffsets", lambda *_: MemoryOffsets())
        if world.rule.small:
            patch.setattr(latest_by_key, "MERGE_BYTES", 1)
            patch.setattr(redrive, "MOST_LETTERS", 1)
            patch.setattr(layout, "MOST_FILES", 1)
        patch.setattr(object_fetch, "Consumer", lambda _: LogClient(world.kafka))
        patch.setattr(arrow_task, "session", lambda _, config: config["client"].client)
        patch.setattr(registry_client, "SchemaRegistryClient", lambda _: RegistryConnection(world.registry))
        try:
            yield
        finally:
            world.kill()
            gc.enable()  # a worker that is frozen in the middle of a batch has it paused
