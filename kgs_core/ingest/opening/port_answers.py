"""Answers of Kafka and the lake as a round takes them: an exception is one, too."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kgs_core.errors import PermanentError, PortError, UnsafeError
from kgs_core.ingest.round.questions import Trouble
from kgs_core.ingest.round.stops import StopCause
from kgs_core.model import TopicPartition

K = TypeVar("K", str, TopicPartition)
V = TypeVar("V")


def each(ask: Callable[[], Mapping[K, V | PortError]], subjects: Collection[K]) -> dict[K, V | Trouble]:
    """What Kafka says of each subject: none answers for another, and no answer at all is an answer for each."""
    try:
        return {k: trouble_of(found) if isinstance(found, PortError) else found for k, found in ask().items()}
    except PortError as e:
        return dict.fromkeys(subjects, trouble_of(e))


def log_of(first: int | Trouble, end: int | Trouble) -> tuple[int, int] | Trouble:
    """First offset and end of a log, or what is the matter with one of them."""
    if isinstance(first, Trouble):
        return first
    return end if isinstance(end, Trouble) else (first, end)


def trouble_of(error: BaseException) -> Trouble:
    """What an exception of an adapter stops a partition for; a foreign one is passing trouble until it lasts."""
    match error:
        case UnsafeError():
            return Trouble(str(error), StopCause.TABLE)
        case PermanentError():
            return Trouble(str(error), StopCause.DENIED)
        case PortError():
            return Trouble(str(error))
        case _:
            return Trouble(f"{type(error).__name__}: {error}")
