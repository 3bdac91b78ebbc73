"""Measures for how long partitions stay unread when a broker is out: kgs beside plain consumers."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from bench.plain_consumers import PLAIN, PlainConsumer
from bench.three_brokers import ThreeBrokers
from bench.unread import AcknowledgedLoad, Advance, commits_of, longest_gaps
from kgs_core.errors import TransientError
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.system.processes import find_runs
from kgs_core.system.shutdown import StopFlag
from kgs_core.system.subprocesses import ChildProcess

KGS = "kgs"
VICTIM, HEIR = 1, 2
BY_HAND = frozenset({"refused", "black", "black in", "black out", "slow", "reset"})
"""Outages that the brokers do not see: another leader is what an operator elects."""
_TOPIC = "load"
_GROUP = f"bench-outage-{os.getpid()}"
_BYTES_PER_S = 60_000.0
_START_S, _REST_S = 240.0, 120.0
_POLL_S = 0.2
_LINES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class OutageFigures:
    """One outage, as one consumer of all partitions has met it.

    Attributes:
        brokers: of the cluster.
        reader: `kgs` or a plain consumer.
        unread_s: longest unread time of each partition, ascending.
    """

    brokers: int
    outage: str
    reader: str
    unread_s: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Of the partitions' times, the nearest rank."""
        return self.unread_s[min(len(self.unread_s) - 1, int(share * len(self.unread_s)))]

    def to_dict(self) -> dict[str, Any]:
        """By the names above, and three percentiles."""
        return asdict(self) | {
            "p50_s": self.percentile(0.5),
            "p95_s": self.percentile(0.95),
            "max_s": self.unread_s[-1],
        }


@dataclass(frozen=True, slots=True)
class OutagePlan:
    """What to measure.

    Attributes:
        brokers: sizes of the clusters.
        outages: of `three_brokers.OUTAGES`.
        partitions: of the topic, spread over the brokers.
        outage_s: how long each lasts.
        elect_after_s: when an operator elects other leaders in outages that the brokers do not see.
    """

    brokers: Sequence[int]
    outages: Sequence[str]
    partitions: int
    outage_s: float
    elect_after_s: float


def run_outages(
    program: Path, folder: Path, plan: OutagePlan, say: Callable[[str], None], stop: StopFlag
) -> list[OutageFigures]:
    """Figures of each outage, on each cluster, of kgs and of each plain consumer at once.

    Raises:
        PermanentError: no broker or no proxy can be started.
        TransientError: a consumer does not come to rest.
    """
    found: list[OutageFigures] = []
    for nodes in plan.brokers:
        place = folder / str(nodes)
        place.mkdir()
        classes = (KGS, *(name.lower() for name in PLAIN))
        say(f"{nodes} broker{'s' * (nodes > 1)}: starting")
        with ThreeBrokers(program, place, classes, nodes) as brokers, ExitStack() as held:
            run = _Run(brokers, plan, place, held)
            for outage in plan.outages:
                if stop.is_set:
                    return found
                found += run.measure(outage, say)
    return found


class _Run:
    """One cluster with its consumers."""

    def __init__(self, brokers: ThreeBrokers, plan: OutagePlan, folder: Path, held: ExitStack) -> None:
        self._brokers = brokers
        self._plan = plan
        self._table = folder / "lake" / _TOPIC
        direct = brokers.kafka.bootstrap_servers
        KafkaAdmin({"bootstrap.servers": direct}).create_topic(_TOPIC, plan.partitions, len(brokers.nodes))
        load = AcknowledgedLoad(direct, _TOPIC, plan.partitions, _BYTES_PER_S)
        self._load = held.enter_context(load)
        held.callback(_end_consumers)
        self._control = held.enter_context(_group(folder, brokers.bootstrap(KGS)))
        self._control.start()
        self._plain: Mapping[str, PlainConsumer] = {
            name: held.enter_context(PlainConsumer(client(brokers.bootstrap(name.lower()), _TOPIC)))
            for name, client in PLAIN.items()
        }
        self._wait_current(_START_S)

    def measure(self, outage: str, say: Callable[[str], None]) -> list[OutageFigures]:
        """One outage, and what it cost each."""
        nodes = len(self._brokers.nodes)
        self._brokers.arrange(lambda tp: tp.partition % nodes + 1 if tp.topic == _TOPIC else VICTIM)
        self._wait_current(_REST_S)
        began = time.time()
        self._brokers.inflict(outage, VICTIM)
        try:
            if outage in BY_HAND and nodes > 1:
                time.sleep(self._plan.elect_after_s)
                self._brokers.lead(HEIR)
            time.sleep(max(0.0, began + self._plan.outage_s - time.time()))
        finally:
            self._brokers.heal()
        with suppress(TransientError):  # a gap that does not end is one up to now
            self._wait_current(_REST_S)
        until = time.time()
        found = []
        for reader, advances in self._advances().items():
            gaps = longest_gaps(self._load.acknowledged, advances, began, until)
            times = tuple(sorted(round(gap.seconds, 2) for gap in gaps.values()))
            found.append(OutageFigures(nodes, outage, reader, times))
            say(f"{nodes} brokers, {outage}: {reader}: at most {times[-1]:.1f} s")
        return found

    def _advances(self) -> dict[str, Mapping[int, Sequence[Advance]]]:
        found: dict[str, Mapping[int, Sequence[Advance]]] = {KGS: commits_of(self._table)}
        return found | {name: consumer.advances for name, consumer in self._plain.items()}

    def _wait_current(self, timeout_s: float) -> None:
        """Until everybody has read all that was acknowledged by now.

        Raises:
            TransientError: somebody has not.
        """
        wanted = self._ends()
        deadline = time.monotonic() + timeout_s
        while True:
            behind = [reader for reader, advances in self._advances().items() if _is_behind(advances, wanted)]
            if not behind and len(wanted) == self._plan.partitions:
                return
            if time.monotonic() > deadline:
                raise TransientError(
                    f"bench outage: not current in {timeout_s:g} s: {', '.join(behind)}; the controller's log ends:\n"
                    f"{self._control.log_tail(_LINES_SHOWN)}"
                )
            time.sleep(_POLL_S)
            if len(wanted) < self._plan.partitions:
                wanted = self._ends()

    def _ends(self) -> dict[int, int]:
        return {p: records[-1].offset + 1 for p, records in self._load.acknowledged.items() if records}


def _is_behind(advances: Mapping[int, Sequence[Advance]], wanted: Mapping[int, int]) -> bool:
    return any(max((a.position for a in advances.get(p, ())), default=0) < end for p, end in wanted.items())


def _group(folder: Path, bootstrap: str) -> ChildProcess:
    """`kgs control`, not yet started, for a group of one consumer of the topic."""
    config = folder / "kgs.yaml"
    tree = {
        "group": _GROUP,
        "kafka": {"bootstrap_servers": bootstrap},
        "lake": {"root": str(folder / "lake")},
        "consumer": {"wait_time_s": 0.1},
        "monitor": {"window_s": 6.0},
        "packing": {"spare_consumers": 0, "max_consumers": 1},
        "topics": [{"topic": _TOPIC}],
    }
    config.write_text(yaml.safe_dump(tree))
    program = str(Path(sys.executable).with_name("kgs"))
    command = [program, "control", "--config", str(config), "--log-dir", str(folder / "logs")]
    return ChildProcess("control", command, folder / "control.log")


def _end_consumers() -> None:
    for members in find_runs(f"{_GROUP}@").values():
        for member in members:
            with suppress(psutil.NoSuchProcess):
                member.kill()
