"""How busy the machine is, as one sees it who has nothing to do with the group: seconds for a second of CPU.

`python -m tests.system.chaos.bystander FILE`: a line every two seconds, seconds since 1970 and the ratio.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.s3_meddler import ROOT

WORK_S, EVERY_S = 0.1, 2.0
"""Long enough that the scheduler gives no more than a fair share, and a twentieth of one core at most."""


class Bystander:
    """What it wrote."""

    def __init__(self, file: Path) -> None:
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        self.samples = [(float(words[0]), float(words[1])) for words in lines if len(words) > 1]

    def factor(self, begin: float, end: float) -> float:
        """Mean over this time, seconds since 1970; 1 is an idle machine, and the least that is given."""
        found = [ratio for at, ratio in self.samples if begin - EVERY_S <= at <= end + EVERY_S]
        return max(1.0, sum(found) / len(found)) if found else 1.0


@contextmanager
def standing_by(file: Path) -> Iterator[None]:
    """It writes until the end of the block."""
    process = subprocess.Popen([sys.executable, "-m", __name__, str(file)], cwd=ROOT)
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def main(file: Path) -> None:
    with file.open("w", buffering=1) as lines:
        while True:
            began, used = time.perf_counter(), time.process_time()
            while time.process_time() - used < WORK_S:
                sum(range(1000))
            lines.write(f"{time.time():.1f} {(time.perf_counter() - began) / WORK_S:.2f}\n")  # noqa: TID251
            time.sleep(EVERY_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
