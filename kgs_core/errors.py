"""The whole exception tree. Expected outcomes are values, not exceptions; what is raised here ends or delays."""

import re
from collections.abc import Sequence

_MAX_LENGTH = 400
# deltalake draws a coloured tree of causes, and obstore appends a Rust dump of what it has said in words
_NOISE = re.compile(r"\x1b\[\d+m|\u21b3|\s+Debug source:.*", re.DOTALL)


class KgsError(Exception):
    """An error that a person can read: one line that says where, what and how to mend it."""

    exit_code = 1


class ConfigError(KgsError):
    """Refused at start: usage or configuration. Carries every problem found, not only the first."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class MeasurementError(KgsError):
    """A reading that cannot be: time going back, an unknown partition."""


class ProtocolError(KgsError):
    """An illegal transition (ours, never caught) or an unknown message (theirs: counted and dropped)."""


class PortError(KgsError):
    """Raised by adapters only, `from` the client library's exception.

    Whoever asks Kafka, the lake, a cluster or Dagster's database may get one. A docstring names it only where it says
    more than that there was no answer (TransientError) or a refusal (PermanentError).
    """


class TransientError(PortError):
    """Worth another try after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class PermanentError(PortError):
    """Another try gives the same answer; a person must act."""


class UnsafeError(PermanentError):
    """Refused because going on could lose or double rows."""

    exit_code = 3


class FencedError(PermanentError):
    """A newer controller has taken over: this one is at its end, and is not to be started again."""

    exit_code = 3


def words(error: BaseException) -> str:
    """Text of an error; the name of its type where it has none, or needs a JVM for it that is gone (py4j)."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - whatever it is, the error in hand is the one to report
        return type(error).__name__


def one_line(error: BaseException) -> str:
    """What an error says, with its causes, in one line of plain text."""
    return " ".join(_NOISE.sub(" ", words(error)).split())[:_MAX_LENGTH]
