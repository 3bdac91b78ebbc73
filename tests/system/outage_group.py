"""A group on three brokers behind proxies, what happens to one of them, and what the group's users notice of it."""

import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

from bench.three_brokers import FLAP_S, ThreeBrokers
from bench.unread import AcknowledgedLoad, Gap, commits_of, longest_gaps
from kgs_core.errors import TransientError
from kgs_core.group.protocol import Heartbeat, Incarnation, Message, Received, Report
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.reporting.status import GroupStatus
from tests.system.chaos.bystander import Bystander
from tests.system.group_record import gone_in_order, load_records, now
from tests.system.ledger import lost_and_doubled, rows_of
from tests.system.pipeline import read_log
from tests.system.rig import BUSY, CALM, SECTIONS, Rig
from tests.waiting import wait_until
from tests.world.group_events import silences

PARTITIONS = 12
VICTIM, HEIR = 1, 2
REST_S = 120.0
_LINE_TIME = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")
_LOOK_S = 0.3


class Reached(NamedTuple):
    """Brokers by their addresses alone."""

    bootstrap_servers: str


@dataclass
class Outcome:
    """What one outage did to the group; times in seconds, None where it has not happened at all.

    Attributes:
        elected_s: from the outage to the moment when the lost broker led no partition of the topic.
        others: partition -> longest unread time, of the partitions that other brokers led.
        lost: the same of the victim's.
        lost_again_s: from the election to the end of the victim's last unread time of more than a few seconds.
        commands: command -> time, in the outage.
        change_s: from the load's step to the end of the change of consumers.
        silent: incarnations that were silent for longer than makes a suspect.
        gone: incarnations that ended though nobody wanted it.
        notes: what commands that failed have said; their time is infinite.
        busy: how many times longer things took on this machine.
    """

    what: str
    elected_s: float | None = None
    others: Mapping[int, Gap] = field(default_factory=dict)
    lost: Mapping[int, Gap] = field(default_factory=dict)
    lost_again_s: float = 0.0
    commands: dict[str, float] = field(default_factory=dict)
    change_s: float | None = None
    silent: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    busy: float = 1.0

    def __str__(self) -> str:
        """One line for people."""

        def longest(gaps: Mapping[int, Gap]) -> str:
            return f"{max((gap.seconds for gap in gaps.values()), default=0.0):.1f}"

        def seconds(value: float | None) -> str:
            return "never" if value is None else f"{value:.1f}"

        commands = ", ".join(f"{name} {took:.1f}" for name, took in self.commands.items())
        return (
            f"{self.what}: unread, others' partitions {longest(self.others)} s, the victim's {longest(self.lost)} s"
            f" (again {self.lost_again_s:.1f} s after the election at {seconds(self.elected_s)} s); {commands};"
            f" change {seconds(self.change_s)} s; silent {len(self.silent)}, gone {len(self.gone)};"
            f" machine's factor {self.busy:.1f}" + "".join(f"\n  {note}" for note in self.notes)
        )


class OutageGroup(Rig):
    """The group: its consumers and its controller are the class `consumers`, producer and test reach brokers directly.

    Attributes:
        brokers: may be struck.
        load: what is written, and when it was acknowledged.
        busy: what a bystander writes.
    """

    def __init__(self, folder: Path, brokers: ThreeBrokers, topic: str, busy: Path) -> None:
        self.brokers, self.busy = brokers, busy
        self.direct = KafkaAdmin({"bootstrap.servers": brokers.kafka.bootstrap_servers})
        self.direct.create_topic(topic, PARTITIONS, 3)
        packing = {**SECTIONS["packing"], "max_consumers": 2}
        reached = Reached(brokers.bootstrap("consumers"))
        super().__init__(folder, reached, topic, packing=packing, membership={})  # silence counts as with any user
        self.load = AcknowledgedLoad(brokers.kafka.bootstrap_servers, topic, PARTITIONS, CALM)

    def at_rest(self, readers: int | None = None) -> GroupStatus:
        """Waits until everything is read, by so many consumers."""
        return self.wait(
            lambda found: (
                found.is_converged
                and len(found.current) == PARTITIONS
                and readers in (None, len(set(found.current.values())))
                and not any(line.stopped or line.needs_attention for line in found.consumers)
            ),
            f"rest with {readers} readers",
            REST_S,
        )

    def strike(self, outage: str, for_s: float, elect_after_s: float | None) -> Outcome:
        """One outage of one broker, which leads the coordinators and the group's own topics; the load changes in it.

        Args:
            outage: one of `OUTAGES`.
            for_s: until it ends.
            elect_after_s: when another broker is made leader of everything; None: Kafka does it, or nobody.
        """
        found = self.at_rest()
        before = {line.incarnation for line in found.consumers if line.incarnation}
        readers = len(set(found.current.values()))
        self.brokers.arrange(lambda tp: tp.partition % 3 + 1 if tp.topic == self.topic else VICTIM)
        outcome = Outcome(outage)
        began, began_at = time.monotonic(), now()
        if outage != "none":
            self.brokers.inflict(outage, VICTIM, ["consumers"])
        threads = [threading.Thread(target=self._note_election, args=(outcome, began, for_s, elect_after_s))]
        self.load.bytes_per_s = CALM if readers > 1 else BUSY
        threads += [threading.Thread(target=self._command, args=(outcome, each)) for each in ("status", "plan")]
        for thread in threads:
            thread.start()
        try:
            time.sleep(for_s)
        finally:
            self.brokers.heal()
            for thread in threads:
                thread.join()
        self.close()
        self.at_rest(1 if readers > 1 else 2)
        self._judge(outcome, began_at, before, may_go=readers - 1)
        return outcome

    def _command(self, outcome: Outcome, name: str) -> None:
        began = time.monotonic()
        done = self.pipeline.kgs(name, "--json")
        outcome.commands[name] = time.monotonic() - began if done.returncode == 0 else inf
        if done.returncode != 0:
            outcome.notes.append(f"kgs {name}: {done.stderr[-300:]}")

    def _note_election(self, outcome: Outcome, began: float, for_s: float, elect_after_s: float | None) -> None:
        is_elected = False
        while time.monotonic() - began < for_s:
            if elect_after_s is not None and not is_elected and time.monotonic() - began >= elect_after_s:
                self.brokers.lead(HEIR)
                is_elected = True
            try:
                found = self.brokers.leaders()
            except TransientError:
                continue
            if not any(node in (VICTIM, -1) for node in found.values()):
                outcome.elected_s = time.monotonic() - began
                return
            time.sleep(_LOOK_S)

    def _judge(self, outcome: Outcome, began_at: float, before: Collection[str], may_go: int) -> None:
        until = now()
        outcome.busy = Bystander(self.busy).factor(began_at, until)
        gaps = self.gaps(began_at, until)
        outcome.others = {p: gap for p, gap in gaps.items() if p % 3 + 1 != VICTIM}
        outcome.lost = {p: gap for p, gap in gaps.items() if p % 3 + 1 == VICTIM}
        elected_at = began_at + (FLAP_S if outcome.elected_s is None else outcome.elected_s)  # it may be back before
        late = [gap.until_s - elected_at for gap in outcome.lost.values() if gap.seconds > 5]
        outcome.lost_again_s = max([0.0, *late])
        records = [each for each in load_records(self.settings) if each.timestamp_ms / 1000 > began_at - 1]
        heard = [each for each in records if _incarnation_of(each) not in gone_in_order(records)]
        outcome.silent = [str(each) for each in silences(heard, self.settings.membership.suspect_after_s)]
        after = {line.incarnation for line in self.look().consumers}
        outcome.gone = sorted(before - after)[may_go:]
        changes = [at for at in self.changes_done() if at > began_at]
        outcome.change_s = max(changes) - began_at if changes else None

    def gaps(self, from_s: float, until_s: float) -> dict[int, Gap]:
        """Longest unread time of each partition."""
        return longest_gaps(self.load.acknowledged, commits_of(self.pipeline.lake / self.topic), from_s, until_s)

    def changes_done(self) -> list[float]:
        """When the controller has said that a change is done, seconds since 1970."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            at = _LINE_TIME.match(line)
            if at and "change done" in line:
                found.append(datetime.strptime(at[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp())
        return found

    def assert_nothing_lost(self) -> None:
        """Call it after the load's end: every acknowledged record is a row, and rows are the log's records, once each.

        A record may stand in the log twice: the producer's guarantee ends where no broker is left that knows of it.
        """
        self.pipeline.wait_caught_up([self.topic], REST_S)
        log = read_log(self.brokers.kafka.bootstrap_servers, self.direct, self.topic)
        rows = rows_of(self.pipeline.lake / self.topic)
        found = lost_and_doubled({(p, offset, value or b"") for p, offset, value in log}, rows)
        assert found == ([], [], []), str(found)[:2000]
        sent = {(p, each.value) for p, all_ in self.load.acknowledged.items() for each in all_}
        assert not sent - {(p, value) for p, _, value in rows}
        self.pipeline.assert_audit_is_clean()

    def told(self) -> set[tuple[str, str]]:
        """Every line of the controller's log and of the consumers' that live."""
        logs = [self.log, *(self.pipeline.folder / "logs" / f"consumer-{number}.log" for number in self.consumers())]
        return {(log.name, line) for log in logs for line in log.read_text(errors="replace").splitlines()}

    def wait_work(self, since_s: float) -> float:
        """When every partition was committed after a moment: seconds from it to the last one's first commit."""

        def last() -> float | None:
            commits = commits_of(self.pipeline.lake / self.topic)
            firsts = [
                min((c.at_s for c in commits.get(p, ()) if c.at_s > since_s), default=None) for p in range(PARTITIONS)
            ]
            return None if None in firsts else max(each for each in firsts if each is not None) - since_s

        found = wait_until(last, REST_S, f"every partition is read again: {self.tail()}")
        assert found is not None
        return found


def _incarnation_of(record: Received[Message]) -> Incarnation | None:
    message = record.message
    return message.member.incarnation if isinstance(message, Report | Heartbeat) else None
