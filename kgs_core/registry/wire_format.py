"""Frame of values that name their schema in a registry, taken off a whole batch at once.

Theory of operation. A serializer names the schema in one of two ways:

- in front of the payload: a byte 0 and the id, 4 bytes, big-endian; or a byte 1 and the GUID, 16 bytes;
- in the record header `__value_schema_id` (of keys `__key_schema_id`) the same bytes, and the value is the payload
  alone. The header counts first. Apicurio's serializers have 8 bytes, a number, in a header of their own.

Protobuf has the indexes of the message behind the id; in front of the payload they are left in it, in a header they are
given as `SchemaGroup.rest`. Everything is found by numpy in Arrow's buffers. Only headers are looked at one by one, and
of these each different one once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

HEADER, KEY_HEADER = "__value_schema_id", "__key_schema_id"
_APICURIO = {HEADER: "apicurio.value.", KEY_HEADER: "apicurio.key."}
NO_VALUE = "no value (tombstone)"
ID_BYTES, GUID_BYTES = 5, 17  # with the magic byte
_BY_ID, _BY_GUID = 0, 1
_MAX_ID = 2**31 - 1
_LONG = 8
_NO_ID = "holds no schema's id or GUID"
_GLOBAL_ID = "Confluent's API knows no global ids: the producer needs apicurio.registry.use-id=contentId"
Offsets = npt.NDArray[np.int64]
SchemaKey = int | UUID


@dataclass(frozen=True, slots=True)
class SchemaGroup:
    """Values of one schema.

    Attributes:
        positions: of the values in the batch, ascending.
        starts: where each one's payload begins in `FramedValues.data`; `ends` likewise.
        rest: what the header has behind the id or GUID; empty where that is not in a header.
    """

    schema: SchemaKey
    positions: Offsets
    starts: Offsets
    ends: Offsets
    rest: bytes = b""


@dataclass(frozen=True, slots=True)
class FramedValues:
    """A batch of values by schema.

    Attributes:
        data: all bytes of the batch, uint8, no copy.
        groups: by schema; every value is in one of them or in `bad`.
        bad: position -> reason.
    """

    data: npt.NDArray[np.uint8]
    groups: Sequence[SchemaGroup]
    bad: Mapping[int, str]


def unframe(values: pa.Array, headers: pa.Array | None = None, header: str = HEADER) -> FramedValues:
    """Values by the schema that they name.

    `headers`: those of each record, as `row_schema.HEADERS`; None: there are none.
    """
    data, starts, ends = byte_ranges(values)
    present = _present(values)
    bad = dict.fromkeys(np.flatnonzero(~present).tolist(), NO_VALUE)
    groups, in_header = _by_header(headers, header, present, starts, ends, bad)
    framed = np.flatnonzero(present & ~in_header)
    magic = data[np.minimum(starts[framed], max(len(data) - 1, 0))] if len(data) else np.zeros(len(framed), np.uint8)
    room = ends[framed] - starts[framed]
    magic = np.where(room > 0, magic, 255)
    with_id, with_guid = (magic == _BY_ID) & (room >= ID_BYTES), (magic == _BY_GUID) & (room >= GUID_BYTES)
    for n in np.flatnonzero(~with_id & ~with_guid).tolist():
        bad[int(framed[n])] = _no_frame(int(room[n]), int(magic[n]))
    groups += _by_id(data, framed[with_id], starts, ends, bad)
    groups += _by_guid(data, framed[with_guid], starts, ends)
    return FramedValues(data, groups, bad)


def unframed(values: pa.Array) -> FramedValues:
    """Values without a frame, all of one schema."""
    data, starts, ends = byte_ranges(values)
    present = _present(values)
    valid, bad = np.flatnonzero(present), dict.fromkeys(np.flatnonzero(~present).tolist(), NO_VALUE)
    return FramedValues(data, [SchemaGroup(0, valid, starts[valid], ends[valid])] if len(valid) else [], bad)


def byte_ranges(values: pa.Array) -> tuple[npt.NDArray[np.uint8], Offsets, Offsets]:
    """All bytes of a binary array (no copy), and where each value begins and ends in them."""
    _, offsets, data = values.buffers()
    if not len(values):
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), at[:-1], at[1:]


def joined(data: npt.NDArray[np.uint8], starts: Offsets, ends: Offsets) -> npt.NDArray[np.uint8]:
    """These parts of `data`, one behind the other."""
    lengths = ends - starts
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    found: npt.NDArray[np.uint8] = data[np.arange(int(lengths.sum()), dtype=np.int64) + shift]
    return found


def _present(values: pa.Array) -> npt.NDArray[np.bool_]:
    if not values.null_count:
        return np.ones(len(values), bool)
    found: npt.NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _no_frame(room: int, magic: int) -> str:
    if room == 0:
        return "empty value"
    if magic in (_BY_ID, _BY_GUID):
        return f"too short: {room} bytes cannot hold a schema's id"
    return (
        f"begins with byte {magic}, not with the 0 or 1 in front of a schema's id: was it written by a serializer that "
        "uses the registry?"
    )


def _by_id(
    data: npt.NDArray[np.uint8], chosen: Offsets, starts: Offsets, ends: Offsets, bad: dict[int, str]
) -> list[SchemaGroup]:
    at = starts[chosen]
    ids = np.zeros(len(chosen), np.int64)
    for n in range(1, ID_BYTES):
        ids = (ids << 8) | data[at + n]
    for i in chosen[ids > _MAX_ID].tolist():
        bad[i] = "names no schema: its id is above 2147483647"
    groups = []
    for number, members in _alike(ids):
        if number <= _MAX_ID:
            which = chosen[members]
            groups.append(SchemaGroup(number, which, starts[which] + ID_BYTES, ends[which]))
    return groups


def _alike(ids: Offsets) -> list[tuple[int, Offsets]]:
    """Each number with where it stands, ascending; one look where there is only one number."""
    if not len(ids):
        return []
    if (ids == ids[0]).all():
        return [(int(ids[0]), np.arange(len(ids), dtype=np.int64))]
    order = np.argsort(ids, kind="stable")
    cuts = np.flatnonzero(np.diff(ids[order])) + 1
    return [(int(ids[members[0]]), members) for members in np.split(order, cuts)]


def _by_guid(data: npt.NDArray[np.uint8], chosen: Offsets, starts: Offsets, ends: Offsets) -> list[SchemaGroup]:
    if not len(chosen):
        return []
    guids = data[starts[chosen][:, None] + np.arange(1, GUID_BYTES)]
    different, which_one = np.unique(guids, axis=0, return_inverse=True)
    groups = []
    for n, members in _alike(which_one.reshape(-1).astype(np.int64)):
        which = chosen[members]
        groups.append(SchemaGroup(UUID(bytes=different[n].tobytes()), which, starts[which] + GUID_BYTES, ends[which]))
    return groups


def _by_header(
    headers: pa.Array | None,
    header: str,
    present: npt.NDArray[np.bool_],
    starts: Offsets,
    ends: Offsets,
    bad: dict[int, str],
) -> tuple[list[SchemaGroup], npt.NDArray[np.bool_]]:
    """Groups of the values whose schema stands in a header; and which values these are, bad ones among them."""
    in_header = np.zeros(len(present), bool)
    if headers is None or not len(headers.flatten()):
        return [], in_header
    entries, of = headers.flatten(), pc.list_parent_indices(headers).to_numpy(zero_copy_only=False)
    groups = []
    for name in (header, f"{_APICURIO[header]}contentId", f"{_APICURIO[header]}globalId"):
        named = np.flatnonzero(pc.equal(entries.field("key"), name).to_numpy(zero_copy_only=False) == 1)  # null: no
        records, first = np.unique(of[named], return_index=True)  # the first of its name counts, as for other readers
        keys = entries.field("value").take(pa.array(named[first], pa.int64()))
        use = keys.is_valid().to_numpy(zero_copy_only=False) & present[records] & ~in_header[records]
        in_header[records[use]] = True
        encoded = keys.filter(pa.array(use)).dictionary_encode()
        chosen = records[use].astype(np.int64)
        for n, members in _alike(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)):
            which, said = chosen[members], encoded.dictionary[n].as_py()
            found = _named_by(said) if name == header else _content_id(name, said)
            if found is None:
                why = _GLOBAL_ID if name.endswith("globalId") else _NO_ID
                bad.update(dict.fromkeys(which.tolist(), f"header {name}: {why}"))
            else:
                groups.append(SchemaGroup(found[0], which, starts[which], ends[which], found[1]))
    return groups, in_header


def _content_id(name: str, said: bytes) -> tuple[SchemaKey, bytes] | None:
    """Of a global id, which is another number, nothing is known by Confluent's API."""
    number = int.from_bytes(said, "big")
    return (number, b"") if name.endswith("contentId") and len(said) == _LONG and number <= _MAX_ID else None


def _named_by(name: bytes) -> tuple[SchemaKey, bytes] | None:
    if len(name) >= GUID_BYTES and name[0] == _BY_GUID:
        return UUID(bytes=name[1:GUID_BYTES]), name[GUID_BYTES:]
    number = int.from_bytes(name[1:ID_BYTES], "big")
    if len(name) >= ID_BYTES and name[0] == _BY_ID and number <= _MAX_ID:
        return number, name[ID_BYTES:]
    return None
