"""A group with its controller on a broker, what can be done to it, and what must hold afterwards."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.group.protocol import Incarnation
from kgs_core.model import TopicPartition
from kgs_core.reporting.consumer_rows import ConsumerRow
from kgs_core.reporting.status import GroupStatus
from kgs_core.system.processes import find_runs
from tests.system.director import wait_commits
from tests.system.group_record import Records, find_problems, load_records, now, unread
from tests.system.pipeline import ConsumerProcess
from tests.system.rig import LIFE_S, PARTITIONS, SECTIONS, Rig

Tps = frozenset[TopicPartition]
# What is owed after a hold-up is produced at twice the pace: nobody is started for it, nor retired for the hold-up
PACKING = {"consumer_capacity_bytes_per_s": 140_000.0, "max_consumers": 2, "apply": "forced_only"}


class ShakenGroup(Rig):
    """A group that is looked at all the time; what was done to it is told at the end of each part.

    Attributes:
        deaths: when incarnations were killed, seconds since 1970.
    """

    def __init__(self, folder: Path, kafka: EmbeddedKafka, topic: str, *, suspect_after_s: float) -> None:
        packing = {**SECTIONS["packing"], **PACKING, "spare_consumers": 1}
        membership = {**SECTIONS["membership"], "suspect_after_s": suspect_after_s, "start_timeout_s": LIFE_S}
        super().__init__(folder, kafka, topic, packing=packing, membership=membership)
        self.deaths: dict[Incarnation, float] = {}
        self.logged: list[str] = []
        self._by_hand: list[ConsumerProcess] = []

    def wait_settled(self, readers: int, without: Collection[Incarnation] = ()) -> GroupStatus:
        """Until so many consumers read everything, the spare is there, and nobody else is, `without` neither."""

        def settled(found: GroupStatus) -> bool:
            lines = found.consumers
            return (
                found.is_converged
                and len(found.current) == PARTITIONS
                and len(set(found.current.values())) == readers == len(lines) - 1
                and not any(line.needs_attention or line.incarnation in without for line in lines)
            )

        return self.wait(settled, f"{readers} readers and a spare, without {without}")

    def runs(self, number: int) -> dict[str, list[psutil.Process]]:
        """A consumer's runs of which something lives, by name."""
        found = find_runs(f"{self.settings.group}@")
        return {name: members for name, members in found.items() if name.split("/")[-2] == str(number)}

    def processes(self, number: int) -> list[psutil.Process]:
        """All of a consumer's run, the leader first."""
        (members,) = self.runs(number).values()
        return sorted(members, key=lambda member: os.getsid(member.pid) != member.pid)

    def start_by_hand(self, number: int) -> ConsumerProcess:
        """`kgs consume` that nobody asked for."""
        self._by_hand.append(ConsumerProcess(self.pipeline, number, [], {}))
        return self._by_hand[-1]

    def clean_up(self) -> None:
        for process in self._by_hand:
            process.destroy()
        super().clean_up()

    @contextmanager
    def frozen(self, number: int) -> Iterator[None]:
        """As a machine that hangs, while the block runs."""
        members = self.processes(number)
        try:
            for member in members:
                with suppress(psutil.NoSuchProcess):
                    member.suspend()
            yield
        finally:
            for member in members:
                with suppress(psutil.NoSuchProcess):
                    member.resume()

    def wait_read(self, tps: Tps) -> None:
        """Until each of them has been committed once more."""
        wait_commits(self.pipeline.lake, tps, now(), LIFE_S)

    def tell(self, what: str, tps: Tps, at: float) -> None:
        """Note for how long these were not read, by the lake's commits."""
        found = unread(self.pipeline.lake, tps, at)
        times = ", ".join(map(str, found.values()))
        load = os.getloadavg()[0]
        self.logged.append(
            f"{what}: first commit after it (longest time without one): {times} ms, machine's load {load}"
        )

    def assert_right(self) -> Records:
        """The rules hold of all that was said so far, and the lake holds what it must."""
        records = load_records(self.settings)
        assert find_problems(self.settings, records, self.deaths) == ()
        self.pipeline.assert_audit_is_clean()
        return records

    def assert_complete(self) -> None:
        """The same, and nothing is missing or doubled, now that nothing is written any more."""
        self.pipeline.wait_caught_up([self.topic], 120)
        self.pipeline.assert_exact(self.topic)
        self.assert_right()


def line_of(found: GroupStatus, number: int) -> ConsumerRow:
    """Of a consumer that is there once."""
    (line,) = [line for line in found.consumers if line.consumer == number]
    return line


def incarnation_of(found: GroupStatus, number: int) -> Incarnation:
    incarnation = line_of(found, number).incarnation
    assert incarnation is not None
    return incarnation


def owned_by(found: GroupStatus, number: int) -> Tps:
    return frozenset(line_of(found, number).partitions)


def owned_besides(found: GroupStatus, number: int) -> Tps:
    """What others than this consumer say that they own."""
    return frozenset(tp for line in found.consumers if line.consumer != number for tp in line.partitions)


def readers_of(found: GroupStatus) -> list[int]:
    return sorted(set(found.current.values()))
