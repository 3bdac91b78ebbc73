"""Protobuf messages whose descriptors a registry has, to columns."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from kgs_core.config import TopicRule
from kgs_core.config.registry import RegistrySettings
from kgs_core.ingest.formats.by_schema import newest_columns, parse_by_schema
from kgs_core.ingest.formats.parsed import Parsed, Pieces, Positions, UnusableSchemaError, ValueBatch
from kgs_core.ingest.formats.protobuf.protobuf_messages import MessageDecoder, natural_columns, usable_fields
from kgs_core.ingest.formats.protobuf.protobuf_schema import message_type
from kgs_core.ports.registry import RegisteredSchema, SchemaKind
from kgs_core.registry.wire_format import FramedValues, SchemaGroup, byte_ranges

FIRST_MESSAGE = (0,)
MAX_DEPTH = 32
_MAX_VARINT_BYTES = 5
Indexes = tuple[int, ...]


def parse_protobuf(batch: ValueBatch) -> Parsed:
    """Protobuf messages to columns by name; missing fields are null, unknown ones ignored."""
    begins = byte_ranges(batch.values)[1]

    def decode(schema: RegisteredSchema, group: SchemaGroup, framed: FramedValues, pieces: Pieces) -> None:
        in_header = bool(group.starts[0] == begins[group.positions[0]])
        for indexes, members, starts in _by_message(group, framed, pieces, in_header=in_header):
            positions = group.positions[members]
            try:
                decoder, fields = _decoder(schema, indexes, batch.columns)
            except UnusableSchemaError as e:
                pieces.fail(positions.tolist(), f"schema {group.schema}: {e}")
                continue
            data, ends = framed.data.data, group.ends[members]
            found = decoder.decode([bytes(data[s:e]) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)])
            pieces.take(found, positions, fields)

    return parse_by_schema(batch, SchemaKind.PROTOBUF, decode)


def columns_of(topic: str, _rule: TopicRule, registry: RegistrySettings) -> pa.Schema:
    """The columns of the first message type of subject `<topic>-value`; see `ColumnsOf`."""
    return newest_columns(
        topic, registry, SchemaKind.PROTOBUF, lambda schema: natural_columns(message_type(schema, FIRST_MESSAGE))
    )


@lru_cache(maxsize=128)
def _decoder(schema: RegisteredSchema, indexes: Indexes, columns: pa.Schema) -> tuple[MessageDecoder, pa.Schema]:
    try:
        descriptor = message_type(schema, indexes)
        return MessageDecoder(descriptor, columns), usable_fields(descriptor)
    except RecursionError:
        raise UnusableSchemaError("is nested too deep") from None


def _by_message(
    group: SchemaGroup, framed: FramedValues, pieces: Pieces, *, in_header: bool
) -> Iterator[tuple[Indexes, Positions, Positions]]:
    """Message indexes, which values of the group have them, and where each one's message begins."""
    everything = np.arange(len(group.positions), dtype=np.int64)
    if in_header:
        indexes, behind = read_indexes(group.rest)
        if indexes is None or behind != len(group.rest):
            pieces.fail(group.positions.tolist(), "its header has no message indexes behind the schema's id or GUID")
        else:
            yield indexes, everything, group.starts
        return
    room = group.ends > group.starts
    first = np.zeros(len(everything), np.uint8)
    first[room] = framed.data[group.starts[room]]
    short = room & (first == 0)
    if short.any():
        yield FIRST_MESSAGE, everything[short], group.starts[short] + 1
    others: dict[Indexes, list[tuple[int, int]]] = {}
    for i in everything[~short].tolist():
        start = int(group.starts[i])
        indexes, behind = read_indexes(framed.data[start : int(group.ends[i])].tobytes())
        if indexes is None:
            pieces.fail([int(group.positions[i])], "no message indexes behind the schema's id or GUID")
        else:
            others.setdefault(indexes, []).append((i, start + behind))
    for indexes, found in others.items():
        members, starts = np.array(found, np.int64).T
        yield indexes, members, starts


def read_indexes(data: bytes) -> tuple[Indexes | None, int]:
    """Message indexes at the front of `data`, and where they end; None: there are none.

    A number of indexes and then each, as zigzag varints; 0 alone is the first message type.
    """
    count, at = _varint(data, 0)
    if count is None or not 0 <= count <= MAX_DEPTH:
        return None, at
    if count == 0:
        return FIRST_MESSAGE, at
    found: list[int] = []
    for _ in range(count):
        index, at = _varint(data, at)
        if index is None or index < 0:
            return None, at
        found.append(index)
    return tuple(found), at


def _varint(data: Sequence[int], at: int) -> tuple[int | None, int]:
    number = 0
    for n, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return (number >> 1) ^ -(number & 1), at + n + 1
    return None, at
