"""`make chaos SECONDS=600 SEED=1`: see `docs/chaos.md`."""

import argparse
import faulthandler
import signal
import sys
import time
from pathlib import Path

from tests.system.chaos.options import Options
from tests.system.chaos.report import run

FOLDER = Path(__file__).parents[3] / "build" / "chaos"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))  # noqa: TID251 - one that nobody has tried
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3)
    parser.add_argument("--faults", default="", help="names of faults or subjects, with commas")
    parser.add_argument("--control", choices=("bare", "dagster"))
    parser.add_argument("--store", choices=("disk", "s3"))
    parser.add_argument("--spark", type=int, choices=(0, 1), default=1)
    given = parser.parse_args()
    faulthandler.register(signal.SIGUSR1)  # says where it is
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: nothing stays behind
    faults = tuple(name for name in given.faults.split(",") if name)
    options = Options.of_seed(
        given.seconds, given.seed, given.control, given.store,
        brokers=given.brokers, faults=faults, spark=bool(given.spark),
    )  # fmt: skip
    print(options.command(), flush=True)
    verdict = run(FOLDER / f"seed-{options.seed}", options, lambda line: print(line, flush=True))
    print("FAILED" if verdict.problems else "all right", verdict.figures, flush=True)
    return 1 if verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
