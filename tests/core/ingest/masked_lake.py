"""A lake whose rows have masked fields, and what a plain loop makes of these."""

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq

from kgs_core.config import resolve_tables
from kgs_core.ingest.fetch.topic_records import records_of
from kgs_core.ingest.opening.topic_opener import TopicOpener
from kgs_core.ingest.opening.topic_state import TopicState
from kgs_core.lake.files.storage import Storage
from kgs_core.lake.topics.factory import open_lake
from kgs_core.model import OffsetRange, TopicId
from kgs_core.ports import CommitOutcome
from tests.group_offsets import MemoryOffsets
from tests.kgs_yaml import kgs_yaml
from tests.processing import process_topic
from tests.sink import FakeRecord, Sink

SECRET = "0123456789abcdef"


@dataclass(frozen=True)
class MaskedRecord(FakeRecord):
    """A record as it is given."""

    content: bytes | None = None
    of_key: bytes | None = None
    header: bytes | None = None

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return self.of_key

    def headers(self) -> Any:
        return [] if self.header is None else [("h", self.header)]


class MaskedLake:
    """A consumer's hold on topic `t`, opened as consumers do it."""

    rows, files = Sink.rows, Sink.files  # as a foreign reader would

    def __init__(self, root: Path, secret: str = SECRET, **rule: Any) -> None:
        lake = {"root": str(root), "mask_secret": secret}
        self.settings = kgs_yaml(root, {"format": "json", **rule}, lake=lake)
        self.spec = resolve_tables(self.settings, ["t"])["t"]
        self.storage = Storage(str(root))
        admin = SimpleNamespace(offsets=lambda tps, which: dict.fromkeys(tps, 0))
        opener = TopicOpener(self.settings, open_lake(self.settings.lake), admin, MemoryOffsets(), None)  # type: ignore[arg-type]
        self.state = TopicState(opener.open(self.spec, TopicId("id1"), 1))

    def take(self, start: int, records: list[MaskedRecord]) -> None:
        self.state.own(frozenset({0}))
        spans = {0: OffsetRange(start, start + len(records))}
        batch, _ = process_topic(self.storage, self.state.job(), records_of(records), spans)
        assert self.state.table.commit(batch) is CommitOutcome.COMMITTED


def hashed(value: bytes) -> bytes:
    return hmac.new(SECRET.encode(), value, hashlib.sha256).digest()


def plainly(how: str, value: Any) -> Any:
    """What becomes of one value, or of each item of a list."""
    if how == "null" or value is None:
        return None
    if isinstance(value, list):
        return [plainly(how, each) for each in value]
    if how != "hash":
        return value[:2]
    if isinstance(value, int):
        return int.from_bytes(hashed(b"%d" % value)[:8], "big", signed=True)
    return hashed(value.encode()).hex() if isinstance(value, str) else hashed(value)


def masked_row(mask: dict[str, str], row: dict[str, Any]) -> dict[str, Any]:
    """By a plain loop."""
    out = dict(row)
    for path, how in mask.items():
        first, _, rest = path.partition(".")
        if not rest or out.get(first) is None:
            out[first] = plainly(how, out.get(first))
        elif isinstance(out[first], list):
            out[first] = [each and {**each, rest: plainly(how, each[rest])} for each in out[first]]
        else:
            out[first] = {**out[first], rest: plainly(how, out[first][rest])}
    return out


def everything_in(folder: Path) -> Iterator[bytes]:
    """All that lies in a lake: files as they are, and the values of columns, which are compressed there."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.read_bytes()
        if path.suffix == ".parquet" and "_delta_log" not in path.parts:
            for row in pq.ParquetFile(path).read().to_pylist():
                yield repr(row).encode() + str(row).encode()


def ingested(root: Path, records: list[MaskedRecord], mask: dict[str, str], split: int = 1, **rule: Any) -> MaskedLake:
    """Committed in so many parts, each by a consumer of its own."""
    step = -(-len(records) // split)
    for start in range(0, len(records), step):
        lake = MaskedLake(root, mask=mask, **rule)
        lake.take(start, records[start : start + step])
    return lake
