"""Errors inside a Spark task, told from the exception that Spark makes of them."""

import errno
import re

from kgs_core.errors import ConfigError, TransientError, UnsafeError, one_line, words

MAX_LENGTH = 500
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_DISK = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system|os error (28|30|122)\b")
_OURS = re.compile(r"kgs_core\.errors\.TransientError: (.*)")


def transient(error: Exception) -> TransientError | None:
    """Our own "try again" out of a task; None when it was something else."""
    match = _OURS.search(words(error))
    return TransientError(match.group(1)[:MAX_LENGTH]) if match else None


def passing(error: BaseException) -> str | None:
    """What stands in the way where that may pass by itself; None: it will not.

    A disk that is full, or was mounted read-only after a fault, may be mended beside us. Libraries say it by an error
    number, by their own words or by those of the system, and wrap it into errors of their own.
    """
    if isinstance(error, TransientError):
        return str(error)
    if isinstance(error, UnsafeError | ConfigError):
        return None
    link: BaseException | None = error
    while link is not None:
        if (isinstance(link, OSError) and link.errno in _DISK_ERRORS) or _DISK.search(words(link)):
            return one_line(error)
        link = link.__cause__ or link.__context__
    return None


def cause(error: BaseException) -> str:
    """The line of a task's traceback that says what was wrong, not Spark's lines around it."""
    lines = [line.strip() for line in words(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception)\b.*: ", line)]
    return (named[-1] if named else lines[0] if lines else type(error).__name__)[:MAX_LENGTH]
