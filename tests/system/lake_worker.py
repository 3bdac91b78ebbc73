"""A consumer of a lake under chaos: reads what a file says it owns, commits, and ends at any moment."""

import json
import os
import random
import time
import warnings
from pathlib import Path
from typing import Any

from kgs_core.errors import TransientError
from kgs_core.lake.files.storage import Storage
from tests.sink import Sink

IDLE_S = 0.01
MAX_RECORDS = 40
EXIT_CHANCE = 0.01


def main(spec: dict[str, Any]) -> None:
    """Until it is killed, or ends itself.

    Args:
        spec: root, options, commit, number, folder, seed.
    """
    warnings.simplefilter("error")
    chance = random.Random(spec["seed"])
    sink = Sink(Storage(spec["root"], spec["options"]), commit=spec["commit"])
    assignment, counts = Path(spec["folder"], f"owned-{spec['number']}"), {"COMMITTED": 0, "REFUSED": 0, "ERROR": 0}
    positions: dict[int, int] = {}
    while True:
        owned = set(json.loads(assignment.read_text()))
        if not owned:
            time.sleep(IDLE_S)
            continue
        try:
            if not owned <= positions.keys() or chance.random() < 0.1:  # else from memory, as a stale owner would
                positions |= sink.table.positions(owned).next_offset
            chosen = sorted(owned) if chance.random() < 0.5 else chance.sample(sorted(owned), 1)
            ranges = {p: (positions[p], positions[p] + chance.randint(1, MAX_RECORDS)) for p in chosen}
            batch = sink.read(ranges)
            die_perhaps(chance)
            outcome = sink.table.commit(batch).name
            die_perhaps(chance)
        except TransientError:
            outcome = "ERROR"
        counts[outcome] += 1
        if outcome == "COMMITTED":
            positions |= {p: end for p, (_, end) in ranges.items()}
        else:
            positions = {}
        Path(spec["folder"], f"counts-{spec['number']}-{os.getpid()}").write_text(json.dumps(counts))


def die_perhaps(chance: random.Random) -> None:
    """As a lost machine does: no clean-up."""
    if chance.random() < EXIT_CHANCE:
        os._exit(1)
