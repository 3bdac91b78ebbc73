"""Header of a controller's records that tells in which write they were, and what its writer knew of earlier ones."""

import secrets
import struct
from typing import NamedTuple

from kgs_core.kafka.records import Headers, Record, headers_of

_NAME = "kgs.write"
_SERIES_BYTES = 8
_VALUE = struct.Struct(f">{_SERIES_BYTES}sI")


class WriteId(NamedTuple):
    """One write, all of whose records are in one transaction.

    Attributes:
        series: of writes of one writer, each begun when the one before it was known to be committed.
    """

    series: bytes
    number: int

    def is_proven_by(self, committed: "WriteId | None") -> bool:
        """Whether this write is committed, too, if that one is."""
        return committed is not None and committed.series == self.series and committed.number >= self.number


class WriteIds:
    """Ids of one writer's writes."""

    def __init__(self) -> None:
        self.begin_series()

    def begin_series(self) -> None:
        """To be called when the newest write is not known to be committed."""
        self._series, self._number = secrets.token_bytes(_SERIES_BYTES), 0

    def next_headers(self) -> Headers:
        """Those of all records of another write."""
        self._number += 1
        return [(_NAME, _VALUE.pack(self._series, self._number))]


def write_id_of(record: Record) -> WriteId | None:
    """What a record's headers say; None: nothing that we understand, because an older version wrote it, say."""
    for name, value in headers_of(record) or ():
        if name == _NAME and isinstance(value, bytes) and len(value) == _VALUE.size:
            return WriteId(*_VALUE.unpack(value))
    return None
