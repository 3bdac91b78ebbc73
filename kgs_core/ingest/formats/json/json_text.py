"""JSON values taken apart in Python, for what pyarrow's reader cannot do: maps, and fields that have no column.

Numbers stay as they are written. Nothing here says that a value is good: what is made of it, pyarrow reads.
"""

import json
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

import numpy as np
import pyarrow as pa

from kgs_core.ingest.formats.json.json_columns import ENTRY

MAX_DEPTH = 200
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_ODD_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"?|-NaN|Inf(?:inity)?', re.DOTALL)  # which pyarrow takes, too
_PYTHON_NAMES = {"-NaN": "NaN", "Inf": "Infinity", "Infinity": "Infinity"}
SURROGATE = re.compile("[\ud800-\udfff]")
_KEY, _VALUE = (f'"{name}": ' for name in ENTRY)

Pairs = tuple[tuple[str, Any], ...]
Shape = Mapping[str, Any]
"""A column's type, as far as there are structs in it, or maps: {"fields": {name: Shape}}, {"item": Shape} of a list,
{"entry": Shape} of a map; empty for all others."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=Number, parse_float=Number, parse_constant=Number)


def read_object(text: str, decoder: json.JSONDecoder = _DECODER) -> Pairs:
    """The pairs of a JSON object, of which an inner one is a tuple, too, and an array a list.

    Raises:
        JSONDecodeError: it is not one.
    """
    try:
        return _decoded(text, decoder)
    except json.JSONDecodeError:
        if "NaN" not in text and "Inf" not in text:
            raise
    return _decoded(_ODD_NUMBER.sub(lambda found: _PYTHON_NAMES.get(found[0], found[0]), text), decoder)


def _decoded(text: str, decoder: json.JSONDecoder) -> Pairs:
    pairs: Pairs
    pairs, end = decoder.raw_decode(text)
    if end != len(text):
        raise json.JSONDecodeError("more than one JSON object", text, end)
    return pairs


def is_too_deep(value: bytes) -> bool:
    """Whether a value is nested deeper than is taken apart here: Python's own bound differs from thread to thread."""
    if value.count(b"{") + value.count(b"[") <= MAX_DEPTH:
        return False
    signs = np.frombuffer(_STRING.sub(b"", value), np.uint8)
    opened = np.isin(signs, list(b"{[")).astype(np.int64) - np.isin(signs, list(b"}]"))
    return bool(len(opened)) and int(opened.cumsum().max()) > MAX_DEPTH


def shape_of(schema: pa.Schema | pa.DataType) -> Shape:
    """The shape of a struct's, or of all, columns."""
    return {"fields": {f.name: _shape_of(f.type) for f in schema}}


def _shape_of(kind: pa.DataType) -> Shape:
    if pa.types.is_struct(kind):
        return shape_of(kind)
    if pa.types.is_map(kind):
        return {"entry": _shape_of(kind.item_type)}
    if pa.types.is_list(kind) and (item := _shape_of(kind.value_type)):
        return {"item": item}
    return {}


def has_map(kind: pa.DataType) -> bool:
    """Whether a map is this type, or in it."""
    if pa.types.is_map(kind):
        return True
    return any(has_map(kind.field(i).type) for i in range(kind.num_fields)) if pa.types.is_nested(kind) else False


def entries_of_maps(value: bytes, shape: Shape) -> bytes:
    """The same object with each map written as an array of its entries, which pyarrow can read.

    Raises:
        ValueError: it is not one JSON object, or has something else where a map is wanted, or a key twice in one.
    """
    return _rewritten(read_object(value.decode().strip(" \t\r\n")), shape).encode()


def _rewritten(found: Any, shape: Shape) -> str:
    if not shape or found is None:
        return written(found, encode_basestring_ascii)
    if (entry := shape.get("entry")) is not None:
        if type(found) is not tuple or len({name for name, _ in found}) < len(found):
            raise ValueError("no map")
        quote = encode_basestring_ascii
        pairs = (f"{{{_KEY}{quote(name)}, {_VALUE}{_rewritten(each, entry)}}}" for name, each in found)
        return f"[{', '.join(pairs)}]"
    if type(found) is tuple and (fields := shape.get("fields")) is not None:
        pairs = (f"{encode_basestring_ascii(n)}: {_rewritten(each, fields.get(n, {}))}" for n, each in found)
        return f"{{{', '.join(pairs)}}}"
    if type(found) is list and (item := shape.get("item")) is not None:
        return f"[{', '.join(_rewritten(each, item) for each in found)}]"
    return written(found, encode_basestring_ascii)


def written(found: Any, quote: Callable[[str], str]) -> str:
    """What was read, as JSON text; numbers as they were."""
    if type(found) is Number:
        return str(found)
    if type(found) is str:
        return quote(found)
    if type(found) is tuple:
        return f"{{{', '.join(f'{quote(name)}: {written(each, quote)}' for name, each in found)}}}"
    if type(found) is list:
        return f"[{', '.join(written(each, quote) for each in found)}]"
    return "null" if found is None else str(found).lower()


def rescued(value: bytes, shape: Shape) -> str | None:
    """The fields of a good value that have no column, as a JSON object; None where there is none.

    Fields of inner objects stand in their objects; in an array null stands for an item that leaves nothing.
    """
    found = read_object(value.decode("utf-8", "surrogateescape").strip(" \t\r\n"))
    for quote in (encode_basestring, encode_basestring_ascii):
        text = _left_over(found, shape, quote)
        if text is None or not SURROGATE.search(text):  # else halves of pairs, and bytes not UTF-8, are escaped
            break
    return text


def _left_over(found: Any, shape: Shape, quote: Callable[[str], str]) -> str | None:
    if type(found) is list and "item" in shape:
        items = [_left_over(each, shape["item"], quote) for each in found]
        return None if all(item is None for item in items) else f"[{', '.join(item or 'null' for item in items)}]"
    if type(found) is not tuple or not ("fields" in shape or "entry" in shape):
        return None
    parts = []
    for name, each in found:
        if "fields" in shape and name not in shape["fields"]:
            parts.append(f"{quote(name)}: {written(each, quote)}")
        else:
            inner = shape["entry"] if "entry" in shape else shape["fields"][name]
            if (text := _left_over(each, inner, quote)) is not None:
                parts.append(f"{quote(name)}: {text}")
    return f"{{{', '.join(parts)}}}" if parts else None
