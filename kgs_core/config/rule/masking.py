"""A rule's mask: fields of which the table gets a hash, a beginning, or nothing. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from kgs_core.config.rule.field_types import ArrayType, FieldType, ScalarType, StructType

HASH = "hash"
NULL = "null"
_TRUNCATE = re.compile(r"truncate\(\s*([1-9][0-9]{0,3})\s*\)")
_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(\.|$)")
_HASHED = tuple(ScalarType(name) for name in ("string", "binary", "long"))
_IMAGES = ("before", "after", "data", "old")
"""Parts of an event that have a row."""
PARTS_OF_EVENTS = ("payload", *_IMAGES)
_PLACES = ("lsn", "sequence", "file", "pos", "row", "ts_ms")
_OF_IMAGES = {("op",), ("type",), ("source",), *(("source", name) for name in _PLACES)}
_OF_ROWS = {
    (name,) for name in ("__op", "__deleted", *(f"__{way}{name}" for way in ("", "source_") for name in _PLACES))
}
"""What is read of an event beside its rows; likewise of an event that is a row."""
MOST_NAMES = 6
"""As many fields are named in a message."""


def _masks(value: Any) -> Any:
    """With `null` as YAML has it, and each text in its one form."""
    if not isinstance(value, Mapping):
        return {} if value is None else value
    return {path: NULL if how is None else _canonical(path, how) for path, how in value.items()}


def _canonical(path: Any, how: Any) -> Any:
    if not isinstance(path, str) or not isinstance(how, str):
        raise ValueError(f"{path}: give hash, null or truncate(n)")  # noqa: TRY004 - pydantic
    mask_path(path)
    length = _TRUNCATE.fullmatch(how.strip())
    if length is not None:
        return f"truncate({length[1]})"
    if how.strip() not in (HASH, NULL):
        raise ValueError(f"{path}: '{how}': give hash, null or truncate(n), with n from 1 to 9999")
    return how.strip()


MaskWords = Annotated[dict[str, str], BeforeValidator(_masks)]
"""Path of a field -> what becomes of it."""


def mask_path(text: str) -> tuple[str, ...]:
    """The names on the way to a field: `address.street`; one with a dot stands in backquotes. Raises `ValueError`."""
    parts, at = [], 0
    while (match := _PART.match(text, at)) is not None:
        parts.append(match[2] if match[1] is None else match[1].replace("``", "`"))
        at = match.end()
        if not match[3]:
            return tuple(parts)
    raise ValueError(f"'{text}' is not the path of a field: write a.b, and a name with a dot or ` in `backquotes`")


def truncated_to(how: str) -> int | None:
    """How many characters stay; None: it is no `truncate(n)`."""
    length = _TRUNCATE.fullmatch(how)
    return None if length is None else int(length[1])


def problem_of_mask(columns: Mapping[str, FieldType], text: str, how: str, *, must_exist: bool = True) -> str:
    """Why a field of these columns cannot be masked so; empty: it can. Lists are passed through, item by item."""
    inside, kind = columns, None
    for part in mask_path(text):
        if part not in inside:
            return f"mask: {text}: no field '{part}', there are {_some(inside)}" if must_exist else ""
        kind = inside[part]
        item, inside = _item(kind), _inside(kind)
    if how == HASH and item not in _HASHED:
        return f"mask: {text} is {kind}: only string, binary and long can be hashed: write null, or change its type"
    if truncated_to(how) is not None and item != ScalarType("string"):
        return f"mask: {text} is {kind}: only string can be truncated: write hash or null"
    return ""


def hides_rows(mask: Mapping[str, str], key: Iterable[str], *, is_in_events: bool) -> str:
    """A column of a key in which different values become alike; empty: there is none.

    Args:
        is_in_events: the key's columns are parts of a change event, as `after.id`.
    """
    lossy = {mask_path(path)[-1 if is_in_events else 0] for path, how in mask.items() if how != HASH}
    return next((name for name in key if name in lossy), "")


def problems_in_events(
    columns: Mapping[str, FieldType], mask: Mapping[str, str], key: Iterable[str], prefix: str, types: Iterable[str]
) -> Iterator[str]:
    """Masks by which the changes of a database cannot be followed: of a key in some of its places, and of what is done.

    Args:
        key: columns of the followed table; `types`: those that are to have another type.
        prefix: of the columns of records' keys.
    """
    masked = {mask_path(path): how for path, how in mask.items()}
    whole: dict[tuple[str, ...], Mapping[str, FieldType]] = {(): columns}
    whole |= {(name,): _inside(columns[name]) for name in ("payload", f"{prefix}payload") if name in columns}
    images = {(*at, name): _inside(fields[name]) for at, fields in whole.items() for name in _IMAGES if name in fields}
    for name in key:
        places = [(*at, name) for at, fields in {**whole, **images}.items() if name in fields]
        places += [(f"{prefix}{name}",)] if f"{prefix}{name}" in columns else []
        shown = [place for place in places if not any(masked.get(place[:n]) == NULL for n in range(1, len(place) + 1))]
        hashed = [place for place in shown if masked.get(place) == HASH]
        if hashed and (clear := [place for place in shown if place not in hashed]):
            words = f"key '{name}' is hashed as {'.'.join(hashed[0])} and not as {'.'.join(clear[0])}"
            yield f"newest_rows: {words}, so deletes would miss their rows: write hash for both"
    needed = _OF_IMAGES if images else _OF_ROWS
    for path, how in masked.items():
        if path[-1] in types and how != NULL:
            yield f"newest_rows: types: column {path[-1]} is masked, and has no such values: drop one of the two"
        inner = path[1:] if path[0] == "payload" else path
        if inner in needed:
            yield f"mask: {'.'.join(path)} tells what an event does: with newest_rows.changes leave it as it is"


def _inside(kind: FieldType) -> Mapping[str, FieldType]:
    item = _item(kind)
    return dict(item.fields) if isinstance(item, StructType) else {}


def _some(fields: Mapping[str, FieldType]) -> str:
    names = [*fields]
    return ", ".join([*names[:MOST_NAMES], *["..."] * (len(names) > MOST_NAMES)]) or "none"


def _item(kind: FieldType) -> FieldType:
    while isinstance(kind, ArrayType):
        kind = kind.item
    return kind


def problems_beside(mask: Mapping[str, str], of_key: Mapping[str, str], of_headers: Mapping[str, str]) -> Iterator[str]:
    """Masked columns that are also in clear in the key or the headers as Kafka has them.

    Args:
        of_key: columns made of the key; `of_headers`: of headers.
    """
    masked = {mask_path(path)[0]: path for path in mask}
    whole = {"_key": "_key" in mask, "_headers": "_headers" in mask or "_headers.value" in mask}
    cures = {"_key": "_key: hash, or _key: null", "_headers": "_headers: null, or _headers.value: hash"}
    for columns, column in ((of_key, "_key"), (of_headers, "_headers")):
        found = [masked[name] for name in columns if name in masked]
        if found and not whole[column]:
            yield f"mask: {found[0]} is also in column {column}, unmasked: add {cures[column]}"
