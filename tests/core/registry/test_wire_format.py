"""The frame of values, against a reading of one value after the other."""

import random
from uuid import UUID

import pyarrow as pa

from kgs_core.lake.files.row_schema import HEADERS
from kgs_core.registry.wire_format import HEADER, joined, unframe

GUID = UUID(int=0x0123456789ABCDEF0123456789ABCDEF)


def by_id(number, payload):
    return b"\0" + number.to_bytes(4, "big") + payload


def named(*names):
    return [{"key": key, "value": value} for key, value in names]


def one_by_one(value, headers):
    """(schema, rest, payload) of one value, or None where it is bad."""
    if value is None:
        return None
    name = next((h["value"] for h in headers or () if h["key"] == HEADER), None)
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


def test_values_of_one_schema_are_one_group_and_their_payloads_lie_behind_the_id():
    values = pa.array([by_id(7, b"ab"), by_id(7, b""), by_id(7, b"c")], pa.binary())
    found, framed = found_by(values)
    assert found == [(7, b"", b"ab"), (7, b"", b""), (7, b"", b"c")]
    assert joined(framed.data, framed.groups[0].starts, framed.groups[0].ends).tobytes() == b"abc"
    assert len(framed.groups) == 1


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


def test_schema_in_a_header_counts_before_one_in_the_value():
    framed = b"\1" + GUID.bytes
    values = pa.array([by_id(7, b"x"), b"plain", b"plain", by_id(8, b"y"), None], pa.binary())
    rows = [named((HEADER, framed)), named(("other", b"1"), (HEADER, framed + b"\2")), named((HEADER, b"\1no"))]
    headers = pa.array([*rows, named((HEADER, None), (HEADER, framed)), named((HEADER, framed))], HEADERS)
    found, framed = found_by(values, headers)
    assert found == [(GUID, b"", by_id(7, b"x")), (GUID, b"\2", b"plain"), None, (8, b"", b"y"), None]
    assert framed.bad[2].startswith("header __value_schema_id")


def test_nothing_at_all():
    assert unframe(pa.array([], pa.binary()), pa.array([], HEADERS)).groups == []
    assert list(unframe(pa.array([None, None], pa.binary())).bad) == [0, 1]


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
    names = [b"\1" + GUID.bytes, b"\1" + bytes(16) + b"z", b"\0\0\0\0\1", b"\0\xff\0\0\1", b"", None, b"\1x"]
    rows = [(draw.choice([HEADER, "a", ""]), draw.choice(names)) for _ in range(draw.randrange(3))]
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
        assert found_by(values)[0] == [one_by_one(v, None) for v in rows[skip:]]
