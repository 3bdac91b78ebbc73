"""Consumers of one table that are killed, stopped and re-assigned at random: every record once, all the same."""

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from kgs_core.lake.delta.delta_maintenance import maintain_table
from kgs_core.lake.files.storage import Storage
from tests.sink import Sink
from tests.system import lake_worker
from tests.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.slow(20)]

WORKERS, PARTITIONS = 3, 6
CHAOS_S = 6.0
MOST_S = 400.0
PROOF = Counter({"COMMITTED": 100, "REFUSED": 10, "move": 10, "stop": 4, "kill": 2, "double": 2, "deaths": 2})
"""What must have happened before the chaos ends: on a slow machine it lasts longer, and is as much of a proof."""
SEED = os.environ.get("KGS_TEST_SEED")
STEP_S = 0.15
PROCESSES = multiprocessing.get_context("forkserver")
"""Forks of a process that has imported all: one that is killed is at work again at once, and not in a second or two."""
PROCESSES.set_forkserver_preload([lake_worker.__name__])


class Crew:
    """Workers, what each is assigned, and what is done to them."""

    def __init__(self, storage: Storage, folder: Path, seed: int, commits: Sequence[str]) -> None:
        self._commits = commits
        self._storage = storage
        self._folder = folder
        self._chance = random.Random(seed)
        self._workers: dict[int, ForkServerProcess] = {}
        self._stopped: dict[int, float] = {}
        self.done: Counter[str] = Counter()
        for number in range(WORKERS):
            self._assign(number, [])
            self._start(number)

    def harass(self, now: float) -> None:
        """One act; the victim of a stop has its partitions given away first, as a suspect has."""
        act = self._chance.choices(["move", "stop", "kill", "double"], [6, 2, 1, 1])[0]
        number = self._chance.randrange(WORKERS)
        if act == "stop" and number not in self._stopped:
            self._deal({*range(WORKERS)} - {number})
            self._signal(number, signal.SIGSTOP)
            self._stopped[number] = now + self._chance.uniform(0.2, 2.0)
        elif act == "kill":
            self._workers[number].kill()
        elif act == "double":  # both believe that they own all
            for owner in self._chance.sample(range(WORKERS), 2):
                self._assign(owner, range(PARTITIONS))
        else:
            self._deal({*range(WORKERS)})
        self.done[act] += 1
        self._revive(now)

    def calm(self) -> None:
        """All partitions with a worker each, everybody alive."""
        self._deal({*range(WORKERS)})
        self.wake()

    def wake(self) -> None:
        """Everybody alive, with what they were assigned: a worker ends itself now and then, in calm times too."""
        self._revive(float("inf"))

    def counts(self) -> Counter[str]:
        """Outcomes that the workers have seen."""
        total: Counter[str] = Counter()
        for path in self._folder.glob("counts-*"):
            try:
                total.update(json.loads(path.read_text()))
            except ValueError:  # killed while it wrote
                continue
        return total

    def end(self) -> None:
        for worker in self._workers.values():
            worker.kill()
            worker.join(10)

    def _revive(self, now: float) -> None:
        for number, until in list(self._stopped.items()):
            if now >= until:
                self._signal(number, signal.SIGCONT)
                del self._stopped[number]
        for number, worker in self._workers.items():
            if not worker.is_alive():
                self.done["deaths"] += 1
                self._stopped.pop(number, None)
                self._start(number)

    def _start(self, number: int) -> None:
        spec = {
            "root": self._storage.root,
            "options": dict(self._storage.options),
            "commit": self._commits[number],
            "number": number,
            "folder": str(self._folder),
            "seed": self._chance.random(),
        }
        self._workers[number] = PROCESSES.Process(target=lake_worker.main, args=(spec,), daemon=True)
        self._workers[number].start()

    def _signal(self, number: int, which: int) -> None:
        pid = self._workers[number].pid
        assert pid is not None
        with suppress(ProcessLookupError):  # it has just ended itself
            os.kill(pid, which)

    def _deal(self, to: set[int]) -> None:
        owned: dict[int, list[int]] = {number: [] for number in range(WORKERS)}
        for partition in range(PARTITIONS):
            owned[self._chance.choice(sorted(to))].append(partition)
        for number, partitions in owned.items():
            if number in to:  # the others keep what they have: nobody waits for an answer
                self._assign(number, partitions)

    def _assign(self, number: int, partitions: "range | list[int]") -> None:
        path = self._folder / f"owned-{number}"
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(list(partitions)))
        temporary.replace(path)


@pytest.mark.parametrize(
    "commits", [["direct"] * 3, ["combined", "combined", "direct"]], ids=["direct", "combined and direct"]
)
def test_rows_are_exact_after_kills_stops_and_double_owners(
    commits: list[str], new_lake: Callable[[], Storage], tmp_path: Path
) -> None:
    storage, seed = new_lake(), int(SEED) if SEED else random.SystemRandom().randrange(10**6)
    print(f"KGS_TEST_SEED={seed}")  # shown with every failure; what the system does with the processes is not in it
    sink = Sink(storage, checkpoint_interval=10).started(PARTITIONS)
    pool = ThreadPoolExecutor(1)  # upkeep may take as long as twenty acts, and holds none of them up
    crew = Crew(storage, tmp_path, seed, commits)
    try:
        crew.calm()
        wait_until(lambda: crew.wake() or crew.counts()["COMMITTED"] >= WORKERS, 60, "the workers work")
        began = now = time.monotonic()
        upkeeps = [pool.submit(maintain_table, storage, "t")]
        while now - began < CHAOS_S or (PROOF - (crew.done + crew.counts()) and now - began < MOST_S):
            crew.harass(now)
            if upkeeps[-1].done() and len(upkeeps) < (now - began) / 3:
                upkeeps.append(pool.submit(maintain_table, storage, "t"))
            time.sleep(STEP_S)  # the pace of the chaos, not a wait for anything
            now = time.monotonic()
        maintained = [each.result() for each in upkeeps]
        positions = dict(sink.table.positions({*range(PARTITIONS)}).next_offset)
        crew.calm()

        def moved() -> bool:
            crew.wake()
            return all(p > positions[n] for n, p in sink.table.positions({*range(PARTITIONS)}).next_offset.items())

        wait_until(moved, 60, f"every partition goes on, seed {seed}: {positions}")
    finally:
        crew.end()
        pool.shutdown()
    found, counts = sink.assert_exact(PARTITIONS), crew.counts()
    print(f"seed {seed}: {sum(found.values())} records, {dict(crew.done)}, {dict(counts)}, {maintained}")
    assert not PROOF - (crew.done + counts), "too little was put to the proof"
    assert [u for u in maintained if u is None or (u.problem and "ompaction" not in u.problem)] == []
