"""What went wrong inside a Spark task, told from the exception that Spark makes of it."""

import re

from kgs_core.errors import TransientError

MAX_LENGTH = 500
_OURS = re.compile(r"kgs_core\.errors\.TransientError: (.*)")


def transient(error: Exception) -> TransientError | None:
    """Our own "try again" out of a task; None when it was something else."""
    match = _OURS.search(str(error))
    return TransientError(match.group(1)[:MAX_LENGTH]) if match else None


def cause(error: Exception) -> str:
    """The line of a task's traceback that says what was wrong, not Spark's lines around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception)\b.*: ", line)]
    return (named[-1] if named else lines[0] if lines else type(error).__name__)[:MAX_LENGTH]
