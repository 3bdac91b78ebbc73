"""JSON that the scan takes, against pyarrow's reader: `python -m tests.fuzz_json_scan VALUES SEED`."""

import json
import random
import struct
import sys
from collections import Counter

import numpy as np
import pyarrow as pa

from kgs_core.ingest.formats.json.json_objects import parse_by_pyarrow
from kgs_core.ingest.formats.json.json_scanner import scan_json
from kgs_core.ingest.formats.parsed import ValueBatch
from kgs_core.lake.files.row_schema import VALUE_TYPES
from tests.slow_parser import plain

BATCH = 2000
ODD = ['a"b', "a\\", r"a\n", "a\nb", "\x01", r"\u0061", 'q":1,"r']
"""Names that JSON writes with an escape; as they are, they are broken or another name."""
SCHEMA = pa.schema(
    [
        *VALUE_TYPES.items(),
        ("größe", pa.string()),
        ("", pa.int64()),
        ("a name that is longer than thirty-two bytes", pa.string()),
        *((name, pa.int64()) for name in ODD),
        ("list", pa.list_(pa.int64())),
        ("struct", pa.struct([("a", pa.string())])),
        ("Info", pa.string()),
        ("x-NaN", pa.int64()),
    ]
)
NAMES = [name for name in SCHEMA.names if name not in ODD]
NUMBER_WORDS = """
    0 -0 1 -1 1.0 -0.0 1e3 1E-3 2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 9223372036854775808
    1e308 1e309 10e308 0.1e309 123.456e307 1e400 1e+00400 1e-400 3.4028235677973365e38 3.4028235677973366e38 -3.5e38
    1e9999999999999999999 -1e-9999999999999999999 0e9999999999999999999 0e-9999999999999999999
    NaN -NaN Inf -Inf Infinity -Infinity nan Infinit 01 1. 1.e1 .5 +1 - 1e 1e+ 0x1 1_0 ٣
"""
LONG_NUMBERS = ["9" * 400, "9" * 4500, f"0.{'0' * 400}1", f"1{'0' * 320}e-300"]
LONG_NUMBERS += [f"1e{sign}{digits}" for sign in ("", "+", "-") for digits in ("9" * 4001, f"{'0' * 4001}1")]
NUMBERS = [*NUMBER_WORDS.split(), *LONG_NUMBERS]
LITERALS = [
    *"""
    0 -0 0.0 -0.0 007 1. .5 +1 - 1e 1e+ 0x1 1_0 ٣ 1e5 1E-3 1e99 1e100 1e308 1e309 1e400 1e-400 5e-324 true false null
    nul True tru NaN -NaN Inf Infinity 2147483647 2147483648 -2147483648 -2147483649 127 128 -129 32767 32768 -32769
    9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 9007199254740993 0.1
    123456789012345678901234567890 3.4028235677973365e38 3.4028235677973366e38 -3.5e38 1.7976931348623157e308
    2.2250738585072014e-308 0.30000000000000004 1e22 1e23 8.5e-65 1e64 1e65 [] {} [1,] {"a":}
    """.split(),  # noqa: SIM905 - they are many
    '[1, {"a": [null, true]}]',
    '{"a": {"b": []}, "a": 1}',
    "[" * 70 + "]" * 70,
    '"',
    "",
]
TEXTS = [
    *[r"\n", r"\"", r"\\", r"\/", r"\b\f\r\t", r"\u00e9", r"\u00E9", r"\u0000", r"\u001f", r"\u20ac", r"\ud83d\ude00"],
    *[r"\ud800", r"\udc00", r"\ud800\u0041", r"\ud83d\n", r"\u12", r"\u12g4", r"\x", "\\"],
    *["é", "€", "😀", "\x7f", "\x1f", "\0", "\t", "}{", "a", "plain ASCII that is longer than thirty-two bytes", ""],
]
BYTES = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\x80", b"\0", b'"', b"\\"]
SIGNS = [bytes([sign]) for sign in b"{}[]:, \n09-.etnuTZ+"]


def differences(count, seed):
    """Values of which the scan and pyarrow make another row, and how many were taken, and good.

    Args:
        count: how many values at least.
        seed: of what is drawn.
    """
    chance, wrong, tally = random.Random(seed), [], Counter()
    while tally["values"] < count:
        values = [any_value(chance) for _ in range(BATCH)]
        wrong += _differ(values, tally, takes_unknown=chance.random() < 0.8)
    return wrong, tally


def _differ(values, tally, *, takes_unknown):
    easy = [b"{}"] * (2 * len(values))  # else the scan is given up where most values are broken
    scanned = scan_json(pa.array([*easy, *values], pa.binary()), SCHEMA, takes_unknown=takes_unknown)
    scanned.table.validate(full=True)
    batch = ValueBatch(pa.array(values, pa.binary()), SCHEMA, rescue=not takes_unknown)
    read = parse_by_pyarrow(batch)
    taken = np.setdiff1d(np.arange(len(easy), len(easy) + len(values)), scanned.left)
    found = dict(zip(taken - len(easy), _bits(scanned.table.take(pa.array(taken))), strict=True))
    wanted = dict(zip(read.good, _bits(read.table), strict=True))
    rescued = read.rescued.to_pylist() if read.rescued is not None else []
    left_over = {i for i, text in zip(read.good, rescued, strict=False) if text is not None}
    tally.update(values=len(values), taken=len(found), good=len(wanted))
    return [
        (values[i], row, wanted.get(i) or read.bad[i])
        for i, row in found.items()
        if i in left_over or row != wanted.get(i)
    ]


def _bits(table):
    """Rows in which no fraction is equal to another one, -0.0 to 0.0 neither."""
    return [repr(row) for row in plain(table)]


def any_value(chance):
    """A JSON object, or what is left of one."""
    names = chance.choices(
        [*NAMES, chance.choice(ODD), "x", "lon", "longer", r"\u006cong", "é", "\\"], k=chance.randrange(7)
    )
    fields = [f"{_name(chance, name)}{_white(chance)}:{_white(chance)}{_any(chance, name)}" for name in names]
    between = f"{_white(chance)},{_white(chance)}"
    text = f"{_white(chance)}{{{_white(chance)}{between.join(fields)}{_white(chance)}}}{_white(chance)}"
    value = bytearray(text.encode("utf-8", "surrogateescape"))
    for _ in range(chance.choice([0, 0, 0, 0, 1, 2])):
        at = chance.randrange(len(value) + 1)
        value[at : at + chance.randrange(3)] = chance.choice([*SIGNS, *BYTES, b""])
    return bytes(value)


def _name(chance, name):
    if name in ODD and chance.random() < 0.5:
        return json.dumps(name)
    return f'"{name}"' if chance.random() < 0.98 else name


def _white(chance):
    return chance.choice(["", "", "", "", " ", "\n", "\t", "\r", "  "])


def _any(chance, name):
    if chance.random() < 0.12:
        return chance.choice([*LITERALS, _text(chance), _text(chance), _fraction(chance), "null"])
    return _fit(chance, name)


def _fit(chance, name):
    """What may well fit the column of this name."""
    kind = SCHEMA.field(name).type if name in SCHEMA.names else chance.choice(SCHEMA.types)
    for fits, make in _MAKERS:
        if fits(kind):
            return make(chance)
    return _whole(chance, kind.bit_width) if pa.types.is_integer(kind) else _text(chance)


def _whole(chance, bits):
    return str(chance.getrandbits(chance.randrange(1, bits + 1)) * chance.choice([1, -1]))


def _text(chance):
    return f'"{"".join(chance.choices(TEXTS, k=chance.randrange(5)))}"'


def _fraction(chance):
    match chance.randrange(5):
        case 0:  # any double
            return repr(struct.unpack("<d", chance.randbytes(8))[0])
        case 1:
            return repr(chance.uniform(-1000, 1000))
        case 2:
            return f"{chance.getrandbits(63)}e{chance.randrange(-70, 70)}"
        case 3:  # near the middle of two doubles
            return f"{(chance.getrandbits(53) | 1 << 53) * 2 + 1}{chance.choice(['', '.0', 'e0', '0e-1', '.000'])}"
        case _:
            return f"{chance.randrange(10**6)}.{chance.randrange(10 ** chance.randrange(1, 13))}"


def _moment(chance):
    year, month, day = chance.choice([0, 1, 4, 1900, 2000, 2026, 9999]), chance.randrange(14), chance.randrange(33)
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if chance.random() < 0.8:
        text += chance.choice("T T  t") + chance.choice(
            ["", "00", "23:59", "12:59:59", "23:59:60", "24:00:00", "1:2:3"]
        )
        text += chance.choice(["", "", f".{'1234567890'[: chance.randrange(10)]}"])
        text += chance.choice(["", "Z", "Z", "z", " Z", "+02", "-0230", "+02:30", "+24:00", "-00:60", "+2", "-23:59"])
    return f'"{text}"'


_MAKERS = (
    (pa.types.is_floating, _fraction),
    (pa.types.is_boolean, lambda chance: chance.choice(["true", "false"])),
    (pa.types.is_temporal, _moment),
    (pa.types.is_list, lambda chance: chance.choice(["[]", "[1, 2]", "null"])),
    (pa.types.is_struct, lambda chance: chance.choice(["{}", '{"a": "b"}', "null"])),
)

if __name__ == "__main__":
    found, counts = differences(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(json.dumps(counts), f"{len(found)} differ", *found[:5], sep="\n")
    sys.exit(bool(found))
