"""Protobuf schemas and messages of all kinds, ways to break them, and what each is to become, one at a time."""

import base64
import datetime as dt
import json
import math

from google.protobuf import descriptor_pool, duration_pb2, struct_pb2, text_format, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

SCALARS = (
    *("DOUBLE", "FLOAT", "INT64", "UINT64", "INT32", "FIXED64", "FIXED32", "BOOL", "STRING", "BYTES"),
    *("UINT32", "SFIXED32", "SFIXED64", "SINT32", "SINT64"),
)
OPTIONAL, REPEATED = "LABEL_OPTIONAL", "LABEL_REPEATED"
MAX_LONG = 2**63 - 1
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
KNOWN = {module.DESCRIPTOR.name: module for module in (timestamp_pb2, duration_pb2, wrappers_pb2, struct_pb2)}


def field(name, number, kind, label=OPTIONAL, more=""):
    named = f'type_name: "{kind}"' if kind.startswith(".") else ""
    kind = "TYPE_MESSAGE" if kind.startswith(".") else f"TYPE_{kind}"
    return f'field {{ name: "{name}" number: {number} type: {kind} {named} label: {label} {more} }}'


def file_of(messages, name="t.proto", syntax="proto3", dependencies=(), package="p"):
    """A file with these message types, in text."""
    needed = "".join(f'dependency: "{each}" ' for each in (*KNOWN, *dependencies))
    return text_format.Parse(
        f'name: "{name}" package: "{package}" syntax: "{syntax}" {needed} {messages}', FileDescriptorProto()
    )


def registered_text(file):
    """The file as a registry gives it."""
    return base64.b64encode(file.SerializeToString()).decode()


def message_class(file, name, others=()):
    pool = descriptor_pool.DescriptorPool()
    for module in KNOWN.values():
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    for each in (*others, file):
        pool.AddSerializedFile(each.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(name))


def _everything():
    rows = [field(f"f_{kind.lower()}", n, kind) for n, kind in enumerate(SCALARS, 1)]
    rows += [field(f"r_{kind.lower()}", n, kind, REPEATED) for n, kind in enumerate(SCALARS, 21)]
    enum = 'type: TYPE_ENUM type_name: ".p.Colour"'
    rows += [
        f'field {{ name: "e" number: 41 {enum} label: {OPTIONAL} }}',
        f'field {{ name: "re" number: 42 {enum} label: {REPEATED} }}',
        field("m", 43, ".p.Everything.Inner"),
        field("rm", 44, ".p.Everything.Inner", REPEATED),
        field("tags", 45, ".p.Everything.TagsEntry", REPEATED),
        field("c1", 46, "INT32", more="oneof_index: 0"),
        field("c2", 47, "STRING", more="oneof_index: 0"),
        field("c3", 48, ".p.Everything.Inner", more="oneof_index: 0"),
        field("o", 49, "INT32", more="oneof_index: 1 proto3_optional: true"),
        field("ts", 50, ".google.protobuf.Timestamp"),
        field("rts", 51, ".google.protobuf.Timestamp", REPEATED),
        field("du", 52, ".google.protobuf.Duration"),
        field("w", 53, ".google.protobuf.UInt64Value"),
        field("ws", 54, ".google.protobuf.StringValue"),
        field("j", 55, ".google.protobuf.Struct"),
        field("rj", 56, ".google.protobuf.Value", REPEATED),
        field("numbers", 57, ".p.Everything.NumbersEntry", REPEATED),
    ]
    inner = (
        field("a", 1, "INT32") + field("s", 2, "STRING") + field("l", 3, "SINT64", REPEATED) + field("u", 4, "UINT64")
    )
    tags = field("key", 1, "STRING") + field("value", 2, ".p.Everything.Inner")
    numbers = field("key", 1, "UINT64") + field("value", 2, "DOUBLE")
    entry = "options { map_entry: true }"
    return (
        f'message_type {{ name: "Everything" {" ".join(rows)}'
        'oneof_decl { name: "choice" } oneof_decl { name: "_o" }'
        f'nested_type {{ name: "Inner" {inner} }} nested_type {{ name: "TagsEntry" {entry} {tags} }}'
        f'nested_type {{ name: "NumbersEntry" {entry} {numbers} }} }}'
        'enum_type { name: "Colour" options { allow_alias: true } value { name: "RED" number: 0 } '
        'value { name: "BLUE" number: 1 } value { name: "AZURE" number: 1 } }'
    )


EVERYTHING = file_of(_everything())
Everything = message_class(EVERYTHING, "p.Everything")


class NoColumnTakesItError(Exception):
    """A value that makes its message a bad one."""


def expected(value, kind=Everything):
    """The row that a message is to become, as Arrow gives it; None: it is bad."""
    try:
        return _row(kind.FromString(value))
    except (DecodeError, NoColumnTakesItError):
        return None


def _row(message):
    return {each.name: _value(message, each) for each in message.DESCRIPTOR.fields}


def _value(message, of):
    found = getattr(message, of.name)
    if of.is_repeated and of.message_type is not None and of.message_type.GetOptions().map_entry:
        kinds = of.message_type.fields_by_name
        return sorted((_one(kinds["key"], key), _one(kinds["value"], found[key])) for key in found)
    if of.is_repeated:
        return [_one(of, each) for each in found]
    return None if of.has_presence and not message.HasField(of.name) else _one(of, found)


def _one(of, found):
    if of.message_type is not None:
        return _message(of.message_type.full_name, found)
    if of.enum_type is not None:
        known = [each.name for each in of.enum_type.values if each.number == found]
        return known[0] if known else str(found)
    if isinstance(found, int) and found > MAX_LONG:
        raise NoColumnTakesItError
    return "NaN" if isinstance(found, float) and math.isnan(found) else found


def _message(name, found):
    if name == "google.protobuf.Timestamp":
        if not (0 <= found.nanos < 10**9 and -62135596800 <= found.seconds <= 253402300799):
            raise NoColumnTakesItError
        return EPOCH + dt.timedelta(seconds=found.seconds, microseconds=found.nanos // 1000)
    if name == "google.protobuf.Duration":
        if abs(found.seconds) > 315576000000 or abs(found.nanos) >= 10**9 or found.seconds * found.nanos < 0:
            raise NoColumnTakesItError
        return found.seconds * 10**6 + int(found.nanos / 1000)
    if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
        try:
            return json.dumps(MessageToDict(found), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        except (ValueError, RecursionError) as e:
            raise NoColumnTakesItError from e
    return _one(found.DESCRIPTOR.fields[0], found.value) if name.endswith("Value") else _row(found)


def comparable(found):
    """A row as Arrow gives it, so that NaN equals NaN and a map's order does not count."""
    if isinstance(found, dict):
        return {name: comparable(each) for name, each in found.items()}
    if isinstance(found, list):
        items = [comparable(each) for each in found]
        return sorted(items) if items and isinstance(found[0], tuple) else items
    if isinstance(found, tuple):
        return tuple(comparable(each) for each in found)
    if isinstance(found, dt.datetime):
        return found.astimezone(dt.UTC)
    return "NaN" if isinstance(found, float) and math.isnan(found) else found


def any_message(random):
    """Bytes of a message with some of its fields."""
    message = Everything()
    for kind in SCALARS:
        if random.random() < 0.2:
            setattr(message, f"f_{kind.lower()}", _scalar(random, kind))
        if random.random() < 0.1:
            getattr(message, f"r_{kind.lower()}").extend(_scalar(random, kind) for _ in range(random.randint(0, 3)))
    for fill in (_enums, _messages, _choices, _known):
        if random.random() < 0.4:
            fill(random, message)
    return message.SerializeToString()


def _scalar(random, kind):
    if kind in ("DOUBLE", "FLOAT"):
        return random.choice([0.0, -0.0, 1.5, math.nan, math.inf])
    if kind in ("STRING", "BYTES", "BOOL"):
        return random.choice({"STRING": ["", "a", "é€"], "BYTES": [b"", b"\xff"], "BOOL": [True, False]}[kind])
    bits = 32 if "32" in kind else 64
    if kind.startswith(("U", "FIXED")):
        return random.choice([0, 1, 2 ** (bits - 1) - 1, 2**bits - 1 if random.random() < 0.1 or bits == 32 else 7])
    return random.choice([0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])


def _inner(random, message):
    message.a, message.s = random.choice([0, -1]), random.choice(["", "x" * 150])
    message.l.extend(random.choice([[], [1, -2], [MAX_LONG]]))
    message.u = 2**64 - 1 if random.random() < 0.02 else 5


def _enums(random, message):
    message.e = random.choice([0, 1, 7, -1])
    message.re.extend([1, 9][: random.randint(0, 2)])


def _messages(random, message):
    _inner(random, message.m)
    for _ in range(random.randint(0, 2)):
        _inner(random, message.rm.add())
        _inner(random, message.tags[random.choice(["", "k", "é"])])
        message.numbers[random.choice([0, 3, 2**40])] = 0.5


def _choices(random, message):
    choice = random.randint(0, 3)
    if choice == 1:
        message.c1 = random.choice([0, 5])
    if choice == 2:
        message.c2 = random.choice(["", "b"])
    if choice == 3:
        _inner(random, message.c3)
    message.o = random.choice([0, 5])


def _known(random, message):
    far = random.random() < 0.05
    message.ts.seconds, message.ts.nanos = random.choice([(0, 0), (-5, 999_999_999), (253402300799 + far, 1500)])
    message.rts.add(seconds=random.choice([1, 253402300799 + far]))
    message.du.seconds, message.du.nanos = random.choice([(0, 0), (-5, -1500), (5, -1 if far else 999_999_999)])
    message.w.value, message.ws.value = random.choice([0, MAX_LONG + far]), random.choice(["", "w"])
    message.j.update({"b": [1, None, "é"], "a": {"c": math.nan if far else True}})
    message.rj.add(number_value=random.choice([0.5, math.inf if far else 1.0]))


def broken(random, value, other):
    """The bytes with one thing wrong, perhaps.

    Args:
        other: bytes of another message.
    """
    out, way = bytearray(value), random.randrange(8)
    at = random.randrange(len(out)) if out else 0
    if way == 0 or not out:
        return random.randbytes(random.randint(0, 20))
    if way == 1:
        out[at] = random.randrange(256)
    elif way == 2:
        out[at] ^= 1 << random.randrange(8)
    elif way == 3:
        del out[at:]
    elif way == 4:
        del out[at : at + random.randint(1, 3)]
    elif way == 5:
        out[at:at] = random.randbytes(random.randint(1, 4))
    elif way == 6:
        out += other
    else:
        out[at:at] = out[at // 2 : at // 2 + random.randint(1, 20)]
    return bytes(out)
