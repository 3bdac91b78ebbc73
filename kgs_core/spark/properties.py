"""The user's settings for Spark on their way to its JVM: passwords are among them, and `ps` shows every argument.

They are handed over in a file that is nowhere on disk: it lives in memory for as long as this process does, and only
this user's processes can open it.
"""

import os
import re
import shlex
from collections.abc import Mapping

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_OURS = re.compile(r"^--properties-file \S+ --load-spark-defaults ")
_LAST = "pyspark-shell"
"""What these arguments must end with."""


def hand_over(settings: Mapping[str, str]) -> None:
    """Have the JVM that this process starts next read these settings; nothing where there are none."""
    others = _OURS.sub("", os.environ.get(_ARGUMENTS, _LAST))
    if not settings:
        if _ARGUMENTS in os.environ:
            os.environ[_ARGUMENTS] = others
        return
    file = os.memfd_create("spark-properties", os.MFD_CLOEXEC)  # open until this process ends: Spark's start opens it
    with os.fdopen(os.dup(file), "wb") as out:
        out.write("".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items()).encode())
    path = shlex.quote(f"/proc/{os.getpid()}/fd/{file}")
    os.environ[_ARGUMENTS] = f"--properties-file {path} --load-spark-defaults {others}"


def _escaped(text: str) -> str:
    """A key or a value as `java.util.Properties` reads it back: everything that could mean something as its number."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-/") else _numbers(c) for c in text)


def _numbers(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
