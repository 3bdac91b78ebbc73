"""Secrets that stand in files of their own: how a setting names one. Pure; nothing is read here."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

_REFERENCE = re.compile(r"\$\{file:([^{}]*)\}")
_BEGIN = "${file:"
LEAST_SECRET = 16
"""Characters of a secret that hashes are made with: of a shorter one all can be tried."""
LOCATION = ".location"
"""End of the names of librdkafka's settings that are themselves paths of files."""


def secret_file(value: object) -> str | None:
    """Path of the file that a setting's value stands in; None where the value stands in kgs.yaml itself."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return found.group(1) if found else None


def files_of(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Paths of all files that these settings need: secrets, certificates and keys; sorted."""
    named = (secret_file(value) or (str(value) if key.endswith(LOCATION) else "") for key, value in settings.items())
    return tuple(sorted({path for path in named if path}))


def check_references(settings: Mapping[str, object]) -> None:
    """Raise a `ValueError` with all that `reference_problems` finds."""
    if problems := list(reference_problems(settings)):
        raise ValueError("; ".join(problems))


def reference_problems(settings: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the ways in which settings, name -> value, name files; one line each."""
    for key, value in sorted(settings.items()):
        if not isinstance(value, str) or _BEGIN not in value:
            continue
        path = secret_file(value)
        if path is None:
            yield f"'{key}': write ${{file:/path/of/the/file}} and nothing else"
        elif not path.startswith("/") or ".." in PurePosixPath(path).parts:
            yield f"'{key}': ${{file:...}} needs an absolute path without '..'"
