"""The frame of values, against a reading of one value after the other."""

import random
from uuid import UUID

import pyarrow as pa

from kgs_core.lake.files.row_schema import HEADERS
from kgs_core.registry.wire_format import KEY_HEADER, joined, unframe

NAMES = HEADER, CONTENT_ID, GLOBAL_ID = "__value_schema_id", "apicurio.value.contentId", "apicurio.value.globalId"
GUID = UUID(int=0x0123456789ABCDEF0123456789ABCDEF)


def by_id(number, payload):
    return b"\0" + number.to_bytes(4, "big") + payload


def named(*names):
    return [{"key": key, "value": value} for key, value in names]


def one_by_one(value, headers):
    """(schema, rest, payload) of one value, or None where it is bad."""
    if value is None:
        return None
    names = {key: next((h["value"] for h in headers or () if h["key"] == key), None) for key in NAMES}
    name = names[HEADER]
    if name is None and (number := names[CONTENT_ID]) is not None:
        is_id = len(number) == 8 and int.from_bytes(number, "big") < 2**31
        return (int.from_bytes(number, "big"), b"", value) if is_id else None
    if name is None and names[GLOBAL_ID] is not None:
        return None
    at, payload = (value, None) if name is None else (name, value)
    if len(at) >= 5 and at[0] == 0 and at[1] < 128:
        schema, rest = int.from_bytes(at[1:5], "big"), at[5:]
    elif len(at) >= 17 and at[0] == 1:
        schema, rest = UUID(bytes=at[1:17]), at[17:]
    else:
        return None
    return (schema, b"", rest) if payload is None else (schema, rest, payload)


def found_by(values, headers=None):
    framed = unframe(values, headers)
    found = dict.fromkeys(framed.bad)
    for group in framed.groups:
        assert list(group.positions) == sorted(group.positions)
        for i, start, end in zip(group.positions, group.starts, group.ends, strict=True):
            assert int(i) not in found
            found[int(i)] = (group.schema, group.rest, framed.data[start:end].tobytes())
    return [found[i] for i in range(len(values))], framed


def test_values_without_a_frame_are_bad_each_in_words():
    values = pa.array([None, b"", b"\0abc", b"{}", b"\0\xff\0\0\0", b"\1short"], pa.binary())
    assert unframe(values).groups == []
    bad = unframe(values).bad
    assert [bad[i].split(":")[0] for i in range(6)] == [
        "no value (tombstone)",
        "empty value",
        "too short",
        "begins with byte 123, not with the 0 or 1 in front of a schema's id",
        "names no schema",
        "too short",
    ]


def random_value(draw):
    kind = draw.random()
    if kind < 0.1:
        return None
    if kind < 0.5:
        return by_id(draw.choice([1, 2, 300, 2**31 - 1, 2**31]), draw.randbytes(draw.randrange(4)))
    if kind < 0.8:
        return b"\1" + draw.choice([GUID.bytes, bytes(16)]) + draw.randbytes(draw.randrange(4))
    return draw.randbytes(draw.randrange(20))


def random_headers(draw):
    names = [
        b"\1" + GUID.bytes,
        b"\1" + bytes(16) + b"z",
        b"\0\0\0\0\1",
        b"\0\xff\0\0\1",
        b"",
        None,
        b"\1x",
        bytes(7) + b"\7",
        b"\xff" * 8,
    ]
    rows = [(draw.choice([*NAMES, "a", ""]), draw.choice(names)) for _ in range(draw.randrange(3))]
    return None if draw.random() < 0.1 else named(*rows)


def test_random_batches_and_slices_of_them():
    draw = random.Random(5)
    for _ in range(300):
        rows = [random_value(draw) for _ in range(draw.randrange(40))]
        heads = [random_headers(draw) for _ in rows]
        skip = draw.randrange(5)
        values, headers = pa.array(rows, pa.binary())[skip:], pa.array(heads, HEADERS)[skip:]
        wanted = [one_by_one(v, h) for v, h in zip(rows[skip:], heads[skip:], strict=True)]
        if all(w is None or w[0] is not None for w in wanted):
            assert found_by(values, headers)[0] == wanted
        plain, framed = found_by(values)
        assert plain == [one_by_one(v, None) for v in rows[skip:]]
        assert len(framed.groups) == len({where[:2] for where in plain if where is not None})
        for group in framed.groups:
            payloads = b"".join(plain[i][2] for i in group.positions)
            assert joined(framed.data, group.starts, group.ends).tobytes() == payloads


def test_records_of_apicurios_serializer_for_java():
    """As its version 3.1.7 wrote them: with its defaults, with `headers.enabled`, and with `use-id=globalId` too."""
    number, encoding = bytes(7) + b"\1", ("apicurio.value.encoding", b"BINARY")
    values = pa.array([b"\0\0\0\0\1\n", b"\n", b"\n"], pa.binary())
    rows = [[], named((CONTENT_ID, number), encoding), named((GLOBAL_ID, number), encoding)]
    framed = unframe(values, pa.array(rows, HEADERS))
    assert sorted((group.schema, *group.positions) for group in framed.groups) == [(1, 0), (1, 1)]
    assert framed.bad[2].endswith("the producer needs apicurio.registry.use-id=contentId")
    keys = unframe(values[1:2], pa.array([named(("apicurio.key.contentId", number))], HEADERS), KEY_HEADER)
    assert keys.groups[0].schema == 1
