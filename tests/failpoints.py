"""Processes that are killed or frozen at a failpoint: one of their own, by its environment, or as if by a kill."""

from pathlib import Path


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
