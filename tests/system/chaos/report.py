"""The one folder that a run leaves, and what is said of it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.system.chaos.journal import Journal
from tests.system.chaos.options import Options
from tests.system.chaos.play import Verdict, play


def run(folder: Path, options: Options, say: Callable[[str], None]) -> Verdict:
    """One run in this folder, which is new; gone afterwards where all was right."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    journal = Journal(folder, say)
    verdict = Verdict(["the run itself broke off: see the traceback"])
    try:
        verdict = play(folder, options, journal)
    finally:
        journal.close()
        for problem in verdict.problems:
            say(f"PROBLEM {problem}")
        if verdict.problems:
            _write(folder, options, verdict)
            say(f"all of it: {folder}\nagain: {options.command()}")
        else:
            shutil.rmtree(folder)
    return verdict


def _write(folder: Path, options: Options, verdict: Verdict) -> None:
    tree = {"again": options.command(), "options": asdict(options), **asdict(verdict)}
    (folder / "verdict.json").write_text(json.dumps(tree, indent=1, default=str))
    (folder / "timeline.txt").write_text("".join(f"{line}\n" for line in _timeline(folder)))
    for large in (*folder.glob("kafka/node-*/data"), folder / "store"):
        shutil.rmtree(large, ignore_errors=True)  # segments, and what `tables` has; brokers' own logs stay


def _timeline(folder: Path) -> list[str]:
    """What was done and what the group said, in one order."""
    lines = []
    for name in ("nemesis", "group"):
        file = folder / f"{name}.jsonl"
        for line in file.read_text().splitlines() if file.exists() else ():
            entry = json.loads(line)
            lines.append((entry.pop("at"), name, entry))
    lines.sort(key=lambda each: each[0])
    return [f"{at - lines[0][0]:8.1f} s  {name:8}{json.dumps(entry)}" for at, name, entry in lines]
