"""A controller played by hand: assignments with the real writer, reports as they stand in the log."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kgs_core.group.protocol import Heartbeat, Member, MemberAssignment, Phase, Received, Report
from kgs_core.group.topics.controller_writer import KafkaControllerWriter
from kgs_core.group.topics.topic_reader import KafkaGroupTopicReader
from kgs_core.group.topics.topics import GroupTopics, create_topics
from kgs_core.model import TopicPartition
from tests.processes import pid_of
from tests.system.pipeline import ConsumerProcess, Pipeline
from tests.waiting import wait_until

MEMBERSHIP = {"suspect_after_s": 30.0}
START_S = 240.0
Tps = frozenset[TopicPartition]


class Director:
    """One group's writer and readers.

    Attributes:
        reports: every full report, in the order of the log.
        beats: last message of each member.
    """

    def __init__(self, pipeline: Pipeline, **membership: float) -> None:
        self.pipeline = pipeline
        self.settings = pipeline.add(membership={**MEMBERSHIP, **membership})
        create_topics(self.settings, pipeline.admin)
        topics = GroupTopics(self.settings, pipeline.admin)
        self._controller_writer, self._topic_reader = KafkaControllerWriter(topics), KafkaGroupTopicReader(topics)
        self._controller_writer.fence()
        self.reports: list[Received[Report]] = []
        self.beats: dict[Member, Report | Heartbeat] = {}
        self._hear(self._topic_reader.read_to_end())

    def close(self) -> None:
        self._topic_reader.close()
        self._controller_writer.close()

    def consumer(self, number: int, *options: str, **environ: str) -> ConsumerProcess:
        """`kgs consume` that joins the group."""
        return ConsumerProcess(self.pipeline, number, options, environ)

    def joined(self, process: ConsumerProcess) -> Member:
        """The member that this process is, once it has joined."""

        def found() -> Member | None:
            process.assert_alive()
            pids = [r.message for r in self.reports if pid_of(r.message.process) == process.process.pid]
            return pids[0].member if pids else None

        return self.wait(found, "joined", START_S)

    def assignment(self, member: Member, owned: Any = (), **more: Any) -> int:
        """Write one assignment; its offset."""
        sets = {name: value if isinstance(value, bool) else frozenset(value) for name, value in more.items()}
        return self._controller_writer.write(None, [MemberAssignment(member, frozenset(owned), **sets)], [])[0].offset

    def acknowledged(self, member: Member, offset: int) -> Report:
        """The member's report about an assignment, once it is there."""

        def found() -> Report | None:
            report = self.last(member)
            return report if report and report.applied is not None and report.applied >= offset else None

        return self.wait(found, f"{member} applies {offset}")

    def give(self, member: Member, owned: Any, **more: Any) -> Report:
        """Assign and wait for it."""
        return self.acknowledged(member, self.assignment(member, owned, **more))

    def hand_over(self, moved: Tps, giver: Member, gainer: Member, *, announced: bool) -> float:
        """Stop, confirmed, start; seconds from the first assignment to the last acknowledgement."""
        began = time.monotonic()
        kept, had = self.owned(giver) - moved, self.owned(gainer)
        if announced:
            self.assignment(gainer, had, pending=moved)
        self.give(giver, kept, revoking=moved)
        self.give(gainer, had | moved)
        return time.monotonic() - began

    def last(self, member: Member) -> Report | None:
        """The newest full report."""
        return next((r.message for r in reversed(self.reports) if r.message.member == member), None)

    def owned(self, member: Member) -> Tps:
        report = self.last(member)
        return report.owned if report else frozenset()

    def wait(self, found: Callable[[], Any], message: str, timeout_s: float = 90) -> Any:
        """The first truthy answer, asked again whenever something has come."""
        deadline = time.monotonic() + timeout_s
        while not (result := found()):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {message}\n{self.reports[-4:]}"
            self._hear(self._topic_reader.poll(0.1))
        return result

    def wait_ended(self, member: Member) -> Report:
        def ended() -> Report | None:
            report = self.last(member)
            return report if report and report.phase is Phase.ENDED else None

        return self.wait(ended, f"{member} ended")

    def assert_single_owner(self) -> None:
        """No two living members ever reported one partition at a time; sequences rise."""
        owned: dict[Member, Tps] = {}
        sequences: dict[Member, int] = {}
        for received in self.reports:
            report = received.message
            assert report.sequence > sequences.get(report.member, 0)
            sequences[report.member] = report.sequence
            owned[report.member] = report.owned
            everything = [tp for tps in owned.values() for tp in tps]
            assert len(everything) == len(set(everything)), f"two owners at {received}"

    def forget(self, member: Member) -> None:
        """It is dead: what it has said counts no longer."""
        self.reports = [r for r in self.reports if r.message.member != member]

    def _hear(self, messages: Any) -> None:
        for received in messages:
            if isinstance(received.message, Report | Heartbeat):
                self.beats[received.message.member] = received.message
            if isinstance(received.message, Report):
                self.reports.append(received)


def wait_commits(lake: Path, tps: Tps, since: float, timeout_s: float = 90) -> None:
    """Until the position of each partition has been moved after `since`, seconds since 1970."""
    wait_until(lambda: are_committed(lake, tps, since), timeout_s, f"committed since {since}: {tps}")


def are_committed(lake: Path, tps: Tps, since: float) -> bool:
    """Whether the position of each partition has been moved after `since`, seconds since 1970."""
    return all(any(t > since for t in commit_times(lake, tp)) for tp in tps)


def commit_times(lake: Path, tp: TopicPartition) -> list[float]:
    """When each commit moved the position of a partition, seconds since 1970; ascending."""
    times = []
    for entry in sorted((lake / tp.topic / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        apps = [action["txn"]["appId"] for action in actions if "txn" in action]
        if any(app.rpartition("/")[2] == str(tp.partition) for app in apps):
            times += [action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action]
    return times
