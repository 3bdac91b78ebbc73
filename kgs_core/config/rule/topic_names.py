"""Names of topics, patterns of these, and paths of tables that are made of them."""

import re
from functools import lru_cache
from typing import Annotated, Any

import re2
from pydantic import AfterValidator, Field, StringConstraints

TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
IN_BRACES = re.compile(r"\{(\w+)\}")


def is_topic_name(topic: str) -> bool:
    """Whether Kafka would allow a topic of this name."""
    return bool(TOPIC_NAME.fullmatch(topic)) and topic not in (".", "..")


def check_pattern(pattern: str) -> None:
    """Raise a `ValueError` for a pattern that is empty, or no RE2."""
    if pattern == "":
        raise ValueError("an empty pattern matches no topic; write .* for all of them")
    try:
        compiled(pattern)
    except re2.error as e:
        raise ValueError(f"not a valid RE2 pattern: {_re2_reason(e)}") from e


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The RE2 pattern."""
    options = re2.Options()
    options.log_errors = False  # else re2 writes to stderr beside our message
    return re2.compile(pattern, options=options)


def path_under_root(table: str) -> str:
    """The path of a table. Raises `ValueError` for odd braces, and parts that lead elsewhere or are Delta's own."""
    bare = IN_BRACES.sub("t", table)
    if "{" in bare or "}" in bare:
        raise ValueError("only {topic}, and {name} of a group of 'pattern', may stand in braces")
    parts = bare.split("/")
    if any(p in ("", ".", "..") or p.startswith("_") for p in parts):
        raise ValueError("must be a relative path without empty, '.', '..' or '_...' parts")
    return table


PlainPath = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9._{}/-]+$"),
    Field(description="use A-Z a-z 0-9 . _ - / and {topic}, or {name} of a group of 'pattern'"),
]
TablePath = Annotated[PlainPath, AfterValidator(path_under_root)]


def _re2_reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
