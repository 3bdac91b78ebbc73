"""Scenarios as text: what is done, `----`, and what the group made of it.

A scenario is a text file of paragraphs. `#` lines tell what it is about. A paragraph's lines above `----` are carried
out one after the other; the lines below are what was seen meanwhile, and must be seen again. A paragraph without a rule
leads to where the scenario begins: another one shows what is seen there. Invariants are looked after at every turn.
`python -m tests.scenarios.transcript` writes the lines below anew: review the difference.

    group [spares=1] [strict=yes] [max=N] ...   the settings, first line of all; C is 100, a rebalance is due above 120
    speeds a=50 b=?60                           what the monitor measures from now on; ? before a speed: not known now
    monitor down                                no more measurements
    controller [run] [watching]                 start one: for one change only; one that starts no consumers
    start 2, kill 2, freeze 2, thaw 2           the latest process of consumer 2; likewise `kill controller`, or
                                                `controller1`, the first
    desired paused; want 2 b [in vain]          what people say; in vain: what is started has what it had before
    begin 2 b                                   what is started from now on has that, and nobody has asked
    apply                                       `kgs plan --apply`
    unable a no rule fits; able                 what is started from now on cannot open a; everybody can open all
    target 1=a 2=bc 3=                          a Target as an earlier controller may have left it
    stuck 2 a offsets gone                      consumer 2 cannot read a
    starts fail; starts hang; starts work       processes end before they report; or never do either
    forget runs; blind fleet                    the fleet knows no past; or cannot tell who is dead
    trouble late=1                              see tests.world.chance.FaultRates
    rounds 3; settle [30]                       so many seconds; until the group is as it shall be, 30 at most
    show                                        who owns what
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from kgs_core.group.controller.desired_state import is_settled
from kgs_core.group.membership.member import MembershipTiming
from kgs_core.group.protocol import (
    DesiredState,
    DesiredVersion,
    Heartbeat,
    MemberAssignment,
    Received,
    Report,
    RunState,
    Target,
    Tombstone,
)
from kgs_core.group.view.events import Launch, Note, Stop
from kgs_core.group.view.transitions import Cause, State
from kgs_core.model import ConsumerId
from kgs_core.planning.load import Load
from tests.sim_group import options, tp
from tests.world.chance import NO_TROUBLE, FaultRates
from tests.world.consumers import Habits
from tests.world.world import World

FOLDER, RULE = Path(__file__).parent, "----"
MOST_ROUNDS, QUIET_ROUNDS = 120, 2
QUIET = frozenset({"StartConsuming", "StopConsuming", "Retire", "rebalance"})
"""Notes that say again what assignments and Targets say."""
ORDINARY = frozenset({Cause.ANOTHER_TARGET, Cause.TARGET_WRITTEN, Cause.CONVERGED})
"""Transitions that every Target brings about; without them its line would not be there, and nothing would settle."""


def names(partitions: Any) -> str:
    return " ".join(sorted(p.topic for p in partitions))


class Scenario:
    """One scenario while it is played."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.seen, self.said = 0, dict[Any, Any]()
        self.commands: dict[str, Callable[..., Iterator[str] | None]] = {
            name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")
        }

    def play(self, line: str) -> list[str]:
        """Carry out one line; what was seen meanwhile."""
        verb, *words = line.split()
        printed = self.commands[verb](*words) or ()
        return [*self.events(), *printed]

    def do_group(self, *words: str) -> None:
        given = dict(word.split("=") for word in words)
        packing = {
            "spare_consumers": int(given.get("spares", 0)),
            "max_consumers": int(given["max"]) if "max" in given else None,
            "sentinel_timeout_s": float(given.get("look", 3600)),
            "apply": given.get("apply", "auto"),
            "max_rscore_per_hour": float(given["budget"]) if "budget" in given else None,
        }
        found = options(packing, strict_handover=given.get("strict") == "yes")
        pace = MembershipTiming(found.membership.heartbeat_s, found.membership.suspect_after_s, 300)
        self.world = World(found, Habits(pace, drains_in_s=float(given.get("drain", 1))), Random(0))

    def do_speeds(self, *words: str) -> None:
        given = dict(word.split("=") for word in words)
        unknown = frozenset(tp(name) for name, speed in given.items() if speed.startswith("?"))
        speeds = {tp(name): float(speed.lstrip("?")) for name, speed in given.items() if speed != "?"}
        self.world.load = Load(speeds, unknown)

    def do_monitor(self, _down: str) -> None:
        self.world.load = None

    def do_controller(self, *words: str) -> None:
        self.world.start_controller(until_done="run" in words, launches="watching" not in words)

    def do_start(self, number: str) -> None:
        self.world.fleet.add(ConsumerId(int(number)))

    def do_kill(self, whom: str) -> None:
        self.someone(whom).kill()
        self.world.look()

    def do_freeze(self, whom: str) -> None:
        self.someone(whom, is_frozen=False).is_frozen = True

    def do_thaw(self, whom: str) -> None:
        self.someone(whom, is_frozen=True).is_frozen = False

    def do_desired(self, state: str) -> None:
        self.world.set_desired_state(RunState(state))

    def do_want(self, version: str, config_hash: str, *in_vain: str) -> None:
        habits = self.world.fleet.habits
        self.world.want(version, config_hash)
        if in_vain:
            self.world.fleet.habits = habits

    def do_begin(self, version: str, config_hash: str) -> None:
        self.world.fleet.habits = replace(self.world.fleet.habits, version=version, config_hash=config_hash)

    def do_apply(self) -> None:
        self.world.ask_for_plan()

    def do_target(self, *words: str) -> None:
        share = {ConsumerId(int(n)): part for n, part in (word.split("=") for word in words)}
        assignment = {tp(name): number for number, part in share.items() for name in part}
        spares = tuple(number for number, part in share.items() if not part)
        speeds = dict.fromkeys(assignment, 10.0)
        known = self.world.view().known
        made = Target("mwf", assignment, spares, speeds, 100.0, 0.0, "by hand", known, (), self.world.clock.ms)
        self.world.topics.fence_writers()
        self.world.topics.commit([made])

    def do_stuck(self, number: str, name: str, *why: str) -> None:
        self.world.reading(ConsumerId(int(number))).stopped[tp(name)] = " ".join(why)

    def do_unable(self, name: str, *why: str) -> None:
        habits = self.world.fleet.habits
        self.world.fleet.habits = replace(habits, cannot_open={**habits.cannot_open, tp(name): " ".join(why)})

    def do_able(self) -> None:
        fleet = self.world.fleet
        fleet.habits = replace(fleet.habits, cannot_open={})
        for each in fleet.living():
            each.habits = replace(each.habits, cannot_open={})

    def do_starts(self, how: str) -> None:
        self.world.chance.trouble = replace(NO_TROUBLE, start_fails=float(how == "fail"))
        starts_in_s = math.inf if how == "hang" else 1.0
        self.world.fleet.habits = replace(self.world.fleet.habits, starts_in_s=starts_in_s)

    def do_forget(self, _runs: str) -> None:
        self.world.fleet.forget()

    def do_blind(self, _fleet: str) -> None:
        self.world.fleet.is_blind = True

    def do_trouble(self, *words: str) -> None:
        given = dict(word.split("=") for word in words)
        self.world.chance.trouble = FaultRates(**{name: float(likelihood) for name, likelihood in given.items()})

    def do_rounds(self, count: str) -> None:
        self.world.rounds(int(count))

    def do_settle(self, most: str = str(MOST_ROUNDS)) -> None:
        quiet = 0
        for _ in range(int(most)):
            before = self.world.topics.journal[:]
            self.world.round()
            news = self.world.topics.journal[len(before) :]
            quiet = quiet + 1 if all(is_heartbeat(entry) for _, entry in news) else 0
            if quiet >= QUIET_ROUNDS and is_at_rest(self.world):
                return
        raise TimeoutError(f"not settled after {most} rounds")

    def do_show(self) -> Iterator[str]:
        for process in sorted(self.world.fleet.living(), key=lambda p: (p.consumer, p.pid)):
            yield f"  {process.member}: {names(process.owned) or '-'}"

    def someone(self, whom: str, *, is_frozen: bool | None = None) -> Any:
        if whom.startswith("controller"):
            return self.world.controllers[int(whom.removeprefix("controller") or 0) - 1]
        living = self.world.fleet.of(ConsumerId(int(whom)))
        return [p for p in living if is_frozen is None or p.is_frozen == is_frozen][-1]

    def events(self) -> Iterator[str]:
        journal = self.world.topics.journal if self.world else []
        for at, entry in journal[self.seen :]:
            for text in self.told(entry):
                yield f"{at:3g}s  {text}"
        self.seen = len(journal)

    def told(self, entry: object) -> Iterator[str]:
        match entry:
            case Launch():
                yield f"launch {entry.consumer}"
            case Stop():
                yield f"stop {entry.handle}"
            case Note(text="state", fields=fields) if fields["cause"] in ORDINARY:
                pass
            case Note(text="state", fields=fields):
                why = f" ({fields['why']})" if fields["why"] else ""
                yield f"{fields['from']} -> {fields['to']}: {fields['cause']}{why}"
            case Note(text=text, fields=fields) if text not in QUIET:
                said = ", ".join(f"{key} {value}" for key, value in fields.items())
                yield f"{text}: {said}" if said else text
            case Received():
                yield from self.received(entry.message)

    def received(self, message: object) -> Iterator[str]:
        match message:
            case Target():
                yield from self.target(message)
            case MemberAssignment():
                sets = {"owns": message.owned, "lets go": message.revoking, "then": message.pending}
                said = [f"{verb} {names(parts)}" for verb, parts in sets.items() if parts] or ["owns nothing"]
                yield f"assignment {message.member}: {', '.join(said)}" + ", retire" * message.retire
            case Report():
                yield from self.report(message)
            case Tombstone():
                yield f"tombstone {message.member}"
            case _:
                yield from self.desired(message)

    def desired(self, message: object) -> Iterator[str]:
        match message:
            case DesiredState(apply_ms=int()):
                yield f"{message.by} asks for what the packer wants"
            case DesiredState():
                yield f"people want: {message.state}"
            case DesiredVersion():
                yield f"people want: version {message.version}, configuration {message.config_hash}"

    def report(self, report: Report) -> Iterator[str]:
        told = (report.phase, report.owned, tuple(report.stopped.items()))
        if self.said.get(report.member) != told:
            self.said[report.member] = told
            stuck = "".join(f", {p.topic} stands still: {why}" for p, why in report.stopped.items())
            yield f"{report.member} {report.phase}: {names(report.owned) or '-'}{stuck}"

    def target(self, target: Target) -> Iterator[str]:
        share = {c: names(p for p, owner in target.assignment.items() if owner == c) for c in target.consumers}
        told = ", ".join(f"{c}: {part or 'spare'}" for c, part in share.items())
        yield f"Target {told}; Rscore {target.rscore:g}"
        if target.quarantined:
            yield f"       quarantined {', '.join(map(str, target.quarantined))}"
        yield f"       because {target.reason}"


def is_at_rest(world: World) -> bool:
    """Whether the newest controller has nothing to do and waits for nobody."""
    state = world.controller.state
    return state.name is State.ENDED or (state.name is State.SENTINEL and is_settled(state))


def is_heartbeat(entry: object) -> bool:
    return isinstance(entry, Received) and isinstance(entry.message, Heartbeat)


def played(text: str) -> tuple[str, list[str]]:
    """The scenario with what is seen now below each rule, and what was wrong."""
    scenario = Scenario()
    blocks = []
    for block in text.strip().split("\n\n"):
        above, rule, _ = f"{block}\n".partition(f"{RULE}\n")
        lines = above.splitlines()
        seen = [event for line in lines if not line.startswith("#") for event in scenario.play(line)]
        blocks.append("\n".join([*lines, RULE, *seen] if rule else lines))
    inspection = scenario.world.inspection
    return "\n\n".join(blocks) + "\n", inspection.problems + inspection.doubled


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.txt")):
        written, problems = played(path.read_text())
        path.write_text(written)
        print(path.name, problems or "")
