"""The environment of a process that is to be killed or frozen at a failpoint."""

from pathlib import Path


def crash_at(point: str, proof: Path, signal_name: str = "KILL") -> dict[str, str]:
    """Variables that send a signal at `point` ("name" or "name:n"), which leaves a file of that name in `proof`."""
    return {
        "KGS_FAILPOINTS": "1",
        "KGS_CRASH_AT": point,
        "KGS_CRASH_DIR": str(proof),
        "KGS_CRASH_SIGNAL": signal_name,
    }
