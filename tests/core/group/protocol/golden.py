"""Messages whose records are kept in `golden.jsonl`: every field set, and every one that may be left out unset."""

import json
from dataclasses import replace
from pathlib import Path

from kgs_core.fleet.host_process import HostProcess
from kgs_core.group.protocol import (
    Change,
    DesiredState,
    DesiredVersion,
    Ending,
    FlatOut,
    Heartbeat,
    Idle,
    Incarnation,
    LearntCapacity,
    Member,
    MemberAssignment,
    Phase,
    Report,
    RunState,
    Starting,
    Target,
    Terms,
    Tombstone,
    WorkDone,
)
from kgs_core.model import ConsumerId, TopicPartition

MEMBERS = tuple(Member(ConsumerId(n), Incarnation(f"1a2b3c4d-{n}_Z")) for n in (3, 1, 20, 999_999_999))
MEMBER = MEMBERS[0]
MANY = [
    TopicPartition(topic, n)
    for topic in ("orders", "a", "Ünïcode-\U0001f600", 'quo"te\\', "t" * 249)
    for n in (*range(12), 100, 2**31 - 1)
]
SOME = MANY[3:40:7]
PROCESS = HostProcess("host-1", "f0e1-boot", 4321, 98_765_432_101, "run-77", "machine-9", 4_026_531_836).as_process()
SHORT_PROCESS = HostProcess("h", "b", 0, 0).as_process()
CHANGES = (
    Change(1_700_000_000_000, "consumer 3 joined", 4, 0.25, 3, 12.5),
    Change(1_700_000_100_000, "", 0, 0.0, 0),
    Change(1_700_000_200_000, "write speed, \U0001f600 \x07 \n", 2**62, 1e15, 5, None),
)
_TARGET = Target("mwf", {}, (), {}, 0.0, 0.0, "", (), (), 0)
_REPORT = Report(MEMBER, 0, Phase.STARTING, 0.0, None, SHORT_PROCESS, None, frozenset())


def _target():
    return Target(
        algorithm="search@1.3",
        assignment={tp: MEMBERS[n % 4].consumer for n, tp in enumerate(reversed(MANY))},
        spares=(ConsumerId(7), ConsumerId(8)),
        speeds={tp: n * 1234.5678 for n, tp in enumerate(MANY)},
        capacity=1.5e6,
        rscore=0.123456789012345,
        reason="consumer 3 is overloaded: 1,7 of 1,5 MB/s, ünïcode",
        known=MEMBERS,
        quarantined=(ConsumerId(5),),
        time_ms=1_700_000_300_000,
        measurement_offset=2**62,
        pinned=frozenset(SOME),
        history=CHANGES,
        terms=Terms("s3://lake/root", 30.0, ("0123456789", "abcdef")),
    )


def _report(phase, ending):
    return Report(
        member=MEMBERS[3],
        sequence=2**62,
        phase=phase,
        bytes_per_s=1e-9,
        batch_age_s=3.75,
        process=PROCESS,
        applied=17,
        owned=frozenset(MANY),
        stopped={tp: f"no table: {tp.partition}" for tp in SOME},
        positions={tp: 1000 * n for n, tp in enumerate(reversed(MANY))},
        version="0.1.0",
        config_hash="0123456789",
        last_drain_s=0.5,
        max_drain_s=1e3,
        drains=3,
        bad_shares={"orders": 0.25, "a": 1.0, "Ünïcode": 0.0},
        ready=frozenset(SOME),
        unready=dict.fromkeys(SOME[:2], "schema: ünïcode \U0001f600"),
        ending=ending,
        why="no space left \x00",
    )


GOLDEN = {
    "target": _target(),
    "target: nothing that may be left out": _TARGET,
    "target: whole numbers where there may be others": Target(
        "nfd", {}, (), {TopicPartition("t", 1): 5}, 7, 0, "", (), (), 1, terms=Terms("", 30, ())
    ),
    "target: as of a group with shared partitions": Target(
        "nfd", {}, (), {}, 7.0, 0.0, "", (), (), 1, terms=Terms("/lake", 30.0, ("ab",), 16)
    ),
    "assignment": MemberAssignment(MEMBER, frozenset(MANY), frozenset(SOME), frozenset(SOME[1:]), retire=True),
    "assignment: nothing": MemberAssignment(MEMBER),
    "tombstone": Tombstone(MEMBERS[3]),
    "heartbeat": Heartbeat(MEMBER, 7, Phase.READING, 12_345.678, 0.5),
    "heartbeat: no batch": Heartbeat(MEMBERS[1], 0, Phase.STARTING, 0, None),
    **{f"report: {phase}, {ending}": _report(phase, ending) for phase, ending in zip(Phase, Ending, strict=True)},
    "report: nothing that may be left out": _REPORT,
    "report: nothing is ready": Report(MEMBER, 1, Phase.READING, 0.0, 0.0, PROCESS, 0, frozenset(), ready=frozenset()),
    "report: of a version that tells its work": replace(
        _REPORT, phase=Phase.READING, work=WorkDone(2**53, 12.5, 3, 2**62, 1e9, 0.125, 5_000_000_000)
    ),
    "report: of a version that tells why commits were refused": replace(
        _REPORT, phase=Phase.READING, work=WorkDone(7, 1.5, 3, 0, 0.0, None, None, 2)
    ),
    "report: of a version that tells what it reads flat out": replace(
        _REPORT,
        phase=Phase.READING,
        flat_out=FlatOut(1.5e6, 900.0, 0.5, 1_700_000_000_000, 2**40, {"orders": 2**33, "Ünïcode": 1}, "2 x fast"),
    ),
    "target: idle": replace(
        _TARGET, idle=Idle(1_700_000_000_000, {MANY[0]: 2**62, MANY[1]: 0}, {"orders": "topic-id"})
    ),
    "target: packed by a learnt capacity": replace(_TARGET, learnt=LearntCapacity(2.3e6, "0.2.0", "abcdef")),
    "target: nobody is outdated any more": replace(_TARGET, fulfilled_ms=1_700_000_000_000),
    "starting": Starting(MEMBER, PROCESS, "waits for the lake"),
    "starting: nothing that may be left out": Starting(MEMBERS[2], SHORT_PROCESS, ""),
    **{f"state: {state}": DesiredState(state, "sam@laptop", 1_700_000_000_000) for state in RunState},
    "version": DesiredVersion("0.2.0", "abcdef", "sam", 5),
    "state: somebody asks for a plan": DesiredState(
        RunState.RUNNING, "sam@laptop", 1_700_000_000_000, apply_ms=1_700_000_000_000
    ),
    "target: a plan that was asked for": replace(_TARGET, applied_ms=1_700_000_000_000),
}


def records():
    """Key and value of each record in the file, by the name of its message."""
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return {
        line["name"]: (line["key"].encode(), None if line["value"] is None else line["value"].encode())
        for line in map(json.loads, lines)
    }
