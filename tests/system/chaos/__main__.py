"""`make chaos SECONDS=600 SEED=1`, or `python -m tests.system.chaos SECONDS=600 SEED=1`: see CONTRIBUTING.md."""

import faulthandler
import signal
import sys
import time
from pathlib import Path

from tests.system.chaos.options import Options
from tests.system.chaos.report import run

FOLDER = Path(__file__).parents[3] / "build" / "chaos"


def main(words: list[str]) -> int:
    faulthandler.register(signal.SIGUSR1)  # says where it is
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: nothing stays behind
    options = Options.of_words(words, int(time.time()))  # noqa: TID251 - a seed that nobody has tried
    print(options.command(), flush=True)
    verdict = run(FOLDER / f"seed-{options.seed}", options, lambda line: print(line, flush=True))
    print("FAILED" if verdict.problems else "all right", verdict.figures, flush=True)
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
