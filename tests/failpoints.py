"""Processes that are killed or frozen at a failpoint: one of their own, by its environment, or as if by a kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class KilledError(BaseException):
    """In the place of a kill: nothing handles it, so what it leaves on the disk is what a killed process leaves."""


def crash_at(point: str, proof: Path, signal_name: str = "KILL") -> dict[str, str]:
    """Variables that send a signal at `point` ("name" or "name:n"), which leaves a file of that name in `proof`."""
    return {
        "KGS_FAILPOINTS": "1",
        "KGS_CRASH_AT": point,
        "KGS_CRASH_DIR": str(proof),
        "KGS_CRASH_SIGNAL": signal_name,
    }


def killed_at(point: str, program: str, folder: Path) -> None:
    """Run a program in a process of its own, killed at `point`: only a real kill leaves what a kill leaves."""
    folder.mkdir()
    command = [sys.executable, "-c", program]
    environment = os.environ | crash_at(point, folder)
    killed = subprocess.run(command, cwd=ROOT, env=environment, timeout=120, start_new_session=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (folder / point.partition(":")[0]).exists()
