"""Changes functions of the pure rooms one at a time, and names the changes that no test of their room notices.

`make mutants`: mutmut makes the changes ("mutants") and runs tests/core/ROOM against each, here for a sample drawn by
a seed. It reads the checkout by links, and writes below build/mutants only: who kills it leaves the checkout as it was.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from mutmut.configuration import config, reset_config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.format_utils import get_mutant_name

ROOMS = (
    *("packing", "planning", "group/controller", "group/view", "group/membership", "group/protocol"),
    *("ingest/round", "lake/rule", "monitor/speeds"),
)
MORE_TESTS = {
    "group/view": ["tests/core/group/controller", "tests/scenarios"],
    "group/controller": ["tests/scenarios"],
}
"""Tests of another room that a room's functions are tested by."""
ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
COLUMNS = ("killed", "survived", "timed out", "unknown")
COLUMN = {
    "killed": "killed",
    "check was interrupted by user": "killed",  # pytest's 2: a test file cannot be imported any more
    "survived": "survived",
    "no tests": "survived",  # none of the room's tests calls the function
    "timeout": "timed out",
    "segfault": "timed out",  # ended by the limit on its CPU time
}

# A fork of a process that has run no test yet: Hypothesis refuses a test that was run before in the same process.
# Tests that start a process elsewhere are left out: mutmut's own code, which is in every function then, finds no
# settings there.
SETTINGS = """
[tool.mutmut]
source_paths = ["kgs_core"]
only_mutate = ["kgs_core/{room}/*"]
also_copy = ["docs"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = [
  "-m", "not system and not slow", "-p", "no:cacheprovider", "--hypothesis-profile=mutants",
  "--deselect=tests/core/packing/test_custom.py",
]
process_isolation = "forkserver"
timeout_constant = 4.0
timeout_multiplier = 5.0
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--room", choices=ROOMS, action="append", help="only this one; may be given several times")
    parser.add_argument("--count", type=int, default=45, help="changes per room (45)")
    parser.add_argument("--seed", type=int, default=0, help="draws which (0)")
    options = parser.parse_args(arguments)
    if options.count < 1:
        parser.error(f"--count={options.count}: give 1 or more")
    found = {}
    for room in options.room or ROOMS:
        with prepared(room):
            found[room] = tried(room, options.count, options.seed)
            write_survivors(room, found[room])
    print_table(found)
    return int(any(status not in COLUMN for statuses in found.values() for status in statuses.values()))


@contextlib.contextmanager
def prepared(room: str) -> Iterator[None]:
    """Makes the folder that mutmut works in anew, and works in it."""
    folder = BUILD / room
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("kgs_core", "tests", "docs"):
        (folder / name).symlink_to(ROOT / name)
    tests = [f"tests/core/{room}", *MORE_TESTS.get(room, ())]
    more = SETTINGS.format(room=room, tests=json.dumps(tests))
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + more)
    reset_config()
    with contextlib.chdir(folder):
        yield


def files(room: str) -> list[Path]:
    return [path for path in sorted(Path("kgs_core", room).rglob("*.py")) if config().should_mutate(path)]


def tried(room: str, count: int, seed: int) -> dict[str, str]:
    """Name of each change that was tried -> what mutmut says of it."""
    names = [
        get_mutant_name(path, name)
        for path in files(room)
        for name in mutate_file_contents(str(path), path.read_text()).mutant_names
    ]
    chosen = Random(seed).sample(names, min(count, len(names)))
    print(f"== {room}: {len(chosen)} of {len(names)} possible changes", flush=True)
    done = subprocess.run([sys.executable, "-m", "mutmut", "run", *chosen], check=False)
    if done.returncode:
        sys.exit(f"error: make mutants: {room}: mutmut ended with {done.returncode}: do its tests pass as they are?")
    codes = {}
    for path in files(room):
        data = SourceFileMutationData(path=path)
        data.load()
        codes |= data.exit_code_by_key
    return {name: status_by_exit_code[codes[name]] for name in sorted(chosen)}


def write_survivors(room: str, statuses: Mapping[str, str]) -> None:
    """Writes build/mutants/ROOM.diff."""
    text = "".join(
        f"# {name}: {status}\n{get_diff_for_mutant(name)}\n"
        for name, status in statuses.items()
        if COLUMN.get(status) not in ("killed", "timed out")
    )
    (BUILD / f"{room}.diff").write_text(text)


def print_table(found: Mapping[str, Mapping[str, str]]) -> None:
    counts = {
        room: Counter(COLUMN.get(status, "unknown") for status in statuses.values()) for room, statuses in found.items()
    }
    counts["all"] = sum(counts.values(), Counter())
    print("".join(f"{title:>18}" for title in ("room", "mutants", *COLUMNS)))
    for room, count in counts.items():
        print("".join(f"{cell:>18}" for cell in (room, count.total(), *(count[column] for column in COLUMNS))))
    print(f"survivors: {os.path.relpath(BUILD)}/ROOM.diff")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
