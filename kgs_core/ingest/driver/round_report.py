"""Report of a round."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class RoundReport:
    """Report of one round, for logs and metrics.

    Attributes:
        refused: batches that did not land: another writer was ahead, or the lake did not answer.
        outrun: refused batches for which another writer was ahead.
        latency_s: from the timestamp of the oldest record to its commit; None without records.
        is_full: there was as much to read as a batch may take, and no record waits for its registry.
        waited_s: part of `fetch_s` and `write_s` during which nothing else was going on.
        offsets: topic -> offsets that landed.
        received: bytes over the wire from each broker, by its id; empty where nobody counts them.
    """

    batches: int = 0
    records: int = 0
    consumed_bytes: int = 0
    refused: int = 0
    outrun: int = 0
    fetch_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0
    latency_s: float | None = None
    problems: set[str] = field(default_factory=set)
    is_full: bool = False
    waited_s: float = 0.0
    offsets: Counter[str] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)
