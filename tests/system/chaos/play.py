"""One run: a group is set up, struck for a while, healed, drained, and judged."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.system.chaos import bounds
from tests.system.chaos.bystander import Bystander, standing_by
from tests.system.chaos.faults import chosen, meant
from tests.system.chaos.journal import Journal, now
from tests.system.chaos.judge import Entry, acknowledged_in, by_partition, crashes, judge, rows_in, waits
from tests.system.chaos.nemesis import Fault, Nemesis
from tests.system.chaos.options import Options
from tests.system.chaos.producers import TRANSACTIONAL, digest
from tests.system.chaos.stage import Stage, open_stage
from tests.system.chaos.witness import Witness
from tests.system.pipeline import read_log
from tests.system.s3_meddler import ROOT

FLUSH_S, AUDIT_S, LONGEST_FACTOR = 300.0, 900.0, 6.0
KEPT_BYTES = 100_000_000
"""Of the lake's files; of more, only its logs are kept."""


@dataclass
class Verdict:
    """What came of a run.

    Attributes:
        problems: empty: all is right.
        figures: for people.
    """

    problems: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


@contextmanager
def _producing(stage: Stage, load: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that writes the load."""
    with (stage.folder / "producers.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.system.chaos.producers", str(load)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def play(folder: Path, options: Options, journal: Journal) -> Verdict:
    """The whole run; raises only where the stage itself could not be set up, or ended by itself."""
    verdict = Verdict(["the run broke off"])
    is_proxied = any(fault.subject == "network" for fault in meant(options.faults))
    with open_stage(folder, options, journal, is_proxied=is_proxied) as stage:
        try:
            verdict = Play(stage, journal).run()
        finally:
            if verdict.problems:
                _keep_tables(stage)
    return verdict


class Play:
    """The parts of a run, one after the other.

    Attributes:
        verdict: as far as it is known.
    """

    def __init__(self, stage: Stage, journal: Journal) -> None:
        self.verdict = Verdict()
        self._stage, self._journal = stage, journal
        self._load, self._busy = stage.folder / "load", stage.folder / "busy.log"
        self._witness = Witness(stage)
        self._nemesis = Nemesis(Random(stage.options.seed), stage, journal)
        self._nemesis.after_each = lambda: _write_shape(stage, self._load)
        self._took: dict[str, Timed] = {}
        self._faults: Sequence[Fault] = ()

    def run(self) -> Verdict:
        stage, options = self._stage, self._stage.options
        self._faults = chosen(stage, options.faults)
        self._journal.tell("stage", **{name: getattr(options, name) for name in ("brokers", "control", "store")})
        _write_load(stage, self._load)
        with (
            standing_by(self._busy),
            _producing(stage, self._load) as producers,
        ):
            self._wait("at rest at first", stage.is_at_rest, bounds.BEGIN_S)
            if self._took["at rest at first"].seconds is not None:
                self._strike(producers)
                self._stop()
        self._judge()
        return self.verdict

    def _strike(self, producers: "subprocess.Popen[bytes]") -> None:
        self._witness.start()
        try:
            self._nemesis.run(self._faults, self._stage.options.seconds)
            self._journal.tell("healed", struck=self._nemesis.struck.total())
            self._wait("at rest after the healing", self._stage.is_at_rest, bounds.REST_S)
            (self._load / "stop").touch()
            producers.wait(FLUSH_S)
            self._wait("drained", lambda: _is_drained(self._stage), bounds.DRAINED_S)
        finally:
            self._witness.close()

    def _wait(self, what: str, condition: Callable[[], bool], bound_s: float) -> None:
        began = now()
        took_s = _until(self._stage, condition, bound_s * LONGEST_FACTOR)
        self._took[what] = Timed(took_s, bound_s, began)
        self._journal.tell(what, after_s=took_s)

    def _stop(self) -> None:
        stage, began = self._stage, now()
        done = stage.run("stop", "--yes", "--wait", "--timeout", "120", timeout_s=180)
        self._took["stopped"] = Timed(round(now() - began, 1), bounds.STOPPED_S, began)
        if done.returncode != 0:
            self.verdict.problems.append(f"kgs stop ended with {done.returncode}: {done.stderr[-300:]}")
        _until(stage, lambda: not stage.left_over(), bounds.GONE_S)  # a JVM ends after its consumer's last word
        self.verdict.problems += [f"left over after kgs stop: {line}" for line in stage.left_over()]
        self.verdict.problems += stage.control.end()

    def _judge(self) -> None:
        verdict, bystander = self.verdict, Bystander(self._busy)
        verdict.problems += crashes(self._stage.folder)
        for what, took in self._took.items():
            end = took.began + (took.seconds or took.bound_s)
            verdict.problems += bounds.late(what, took.seconds, took.bound_s, took.began, end, bystander)
        if never := sorted({fault.name for fault in self._faults} - self._nemesis.struck.keys()):
            verdict.problems.append(f"found nothing to strike: {', '.join(never)}")
        verdict.figures = {"faults": dict(self._nemesis.struck), "looks": self._witness.looks}
        verdict.figures |= {what: took.seconds for what, took in self._took.items()}
        verdict.figures["machine_factor"] = round(bystander.factor(self._journal.began, now()), 2)
        if self._witness.looks:
            _judge_times(verdict, self._witness, bystander)
            _judge_values(verdict, self._stage, self._load, self._journal, bystander)


class Timed(NamedTuple):
    """How long something took: seconds, None where it never came; the bound; when it began."""

    seconds: float | None
    bound_s: float
    began: float


def _keep_tables(stage: Stage) -> None:
    """Their disk is gone at the end."""
    files = [file for file in stage.lake.tables.rglob("*") if file.is_file()]
    is_small = sum(file.stat().st_size for file in files) < KEPT_BYTES
    for file in files:
        if is_small or "_delta_log" in file.parts:
            kept = stage.folder / "tables" / file.relative_to(stage.lake.tables)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, kept)


def _write_load(stage: Stage, load: Path) -> None:
    load.mkdir()
    unclean = [topic for topic in stage.partitions if topic == stage.unclean_topic]
    tree = {
        "bootstrap": stage.kafka.bootstrap_servers,
        "seed": stage.options.seed,
        "bytes_per_s": stage.options.bytes_per_s,
        "topics": [topic for topic in stage.partitions if topic not in unclean],
        "unclean": unclean,
    }
    (load / "load.json").write_text(json.dumps(tree))
    _write_shape(stage, load)


def _write_shape(stage: Stage, load: Path) -> None:
    new = load / "shape.new"
    new.write_text(json.dumps(stage.partitions))
    new.replace(load / "shape.json")


def _until(stage: Stage, condition: Callable[[], bool], timeout_s: float) -> float | None:
    """Seconds until it held; None: it never did."""
    began = time.monotonic()
    while time.monotonic() - began < timeout_s:
        stage.control.keep()
        if condition():
            return round(time.monotonic() - began, 1)
        time.sleep(0.5)
    return None


def _is_drained(stage: Stage) -> bool:
    """The lake has all there is, but of what stands still because its log was truncated."""
    stage.look()
    stopped = stage.stopped()
    positions = stage.pipeline.positions(stage.partitions)
    ends = stage.pipeline.admin.offsets(list(positions), "latest", committed_reads=True)
    left = {
        str(tp): (positions[tp], end) for tp, end in ends.items() if tp not in stopped and (positions[tp] or 0) != end
    }
    (stage.folder / "not-drained.json").write_text(json.dumps(left))
    return not left


def _judge_times(verdict: Verdict, witness: Witness, bystander: Bystander) -> None:
    verdict.problems += bounds.unowned_too_long(witness.unowned.values(), bystander)
    longest = max((each.end - each.begin for each in witness.unowned.values()), default=0.0)
    growing, judged = bounds.growing(witness.uses)
    verdict.problems += growing
    verdict.figures |= {"longest_unowned_s": round(longest, 1), "processes_judged_for_growth": judged}


def _judge_values(verdict: Verdict, stage: Stage, load: Path, journal: Journal, bystander: Bystander) -> None:
    acknowledged = acknowledged_in(load)
    bootstrap, admin = stage.kafka.bootstrap_servers, stage.pipeline.admin
    log = {
        Entry(topic, partition, offset, digest(value or b""))
        for topic in stage.partitions
        for partition, offset, value in read_log(bootstrap, admin, topic)
    }
    found = judge(acknowledged, log, rows_in(stage.lake.tables, stage.partitions), set(stage.truncated))
    # KAFKA-20734 (docs/adr/0024): a committed transaction has no marker where a partition had no leader at that moment,
    # and ends there as the next one of its producer does. Whoever reads committed records never sees these
    transactional = acknowledged_in(load, TRANSACTIONAL)
    undone = [each for each in found.lost_by_kafka if each in transactional]
    found.lost_by_kafka = [each for each in found.lost_by_kafka if each not in transactional]
    verdict.figures["undone_by_kafka"] = len(undone)
    for name in ("lost", "doubled", "foreign", "lost_by_kafka"):
        if entries := getattr(found, name):
            verdict.problems.append(f"{name}: {len(entries)}: {by_partition(entries)}, first {entries[0]}")
    verdict.figures |= {"acknowledged": found.acknowledged, "records": found.records, "rows": found.rows}
    longest = waits(stage.lake.tables, acknowledged, journal)
    verdict.problems += [line for each in longest[:20] for line in bounds.unread_too_long([each], bystander)]
    verdict.figures["longest_unread_s"] = round(longest[0].seconds, 1) if longest else None
    _judge_audit(verdict, stage, set(found.outdated))


def _judge_audit(verdict: Verdict, stage: Stage, outdated: set[tuple[str, int]]) -> None:
    """`kgs audit` finds what is gone from the log, and nothing else; and its partition stands still."""
    done = stage.run("audit", "--json", "--values", timeout_s=AUDIT_S)
    (stage.folder / "audit.json").write_text(done.stdout)
    try:
        tables = json.loads(done.stdout)["tables"]
    except ValueError:
        verdict.problems.append(f"kgs audit ended with {done.returncode}: {done.stderr[-300:]}")
        return
    wrong = {(each["topic"], part["partition"]) for each in tables for part in each["partitions"] if not part["ok"]}
    verdict.problems += [f"{table['topic']}: {table['problem']}" for table in tables if table["problem"]]
    stopped = {tuple(str(tp).rsplit(":", 1)) for tp in stage.stopped()}
    verdict.problems += [f"kgs audit finds something wrong in {topic}:{n}" for topic, n in sorted(wrong - outdated)]
    for topic, number in sorted(outdated):
        if (topic, number) not in wrong:
            verdict.problems.append(f"kgs audit says nothing of {topic}:{number}, whose log was truncated")
        if (topic, str(number)) not in stopped:
            verdict.problems.append(f"{topic}:{number} was truncated below the position, and is read on")
    verdict.figures["outdated_partitions"] = sorted(f"{topic}:{number}" for topic, number in outdated)
