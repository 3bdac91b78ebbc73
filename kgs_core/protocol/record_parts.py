"""A message as the records that carry it: one, or several parts where one would be too large; all of them or none.

Theory of operation. The text of a large message is cut, and each part is a record of version 2, which an earlier kgs
refuses by that name. All parts have one id, the hash of the whole text. A reader gives the message out with its last
part, once all parts of the id have come in their order and the text has that hash; so nothing can come out that was not
written as a whole, whatever was mixed, lost or doubled. Everything else is dropped and counted.

- Killed between two parts: the controller's parts are in one transaction and are never seen. A consumer's half report
  is dropped; it reports anew.
- Compaction: each part has a key of its own, and the first one the message's, so that it takes the place of whatever
  the message was before. A part goes only where a later message has one of that number. The newest message is whole,
  since nothing is later; older ones lack parts and are dropped.
- Fewer parts than before: what is left over has no first part any more, and is dropped. `leftover_keys` says which
  keys a writer may remove.
- Place: a message stands where its last part stands. That is its offset, its time and, of a Target, its epoch.

References:
    Kafka's records are limited by `max.message.bytes`; the id by content is that of content-addressed stores.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from kgs_core.errors import ProtocolError
from kgs_core.protocol.codec import MAX_BYTES, decode, encode
from kgs_core.protocol.messages import Message

PART_CHARACTERS = 1_900_000
"""Of a part's text: within a record, a character takes at most 4 bytes."""
MAX_PARTS = 100
"""Of a message: a Target with some three million partitions."""
MOST_HELD_CHARACTERS = 400_000_000
"""Of parts whose others have not come; the oldest are dropped first."""

Record = tuple[bytes, bytes | None]
"""Key and value; None removes what had the key."""
_VERSION: Literal[2] = 2
_PART_KEY = re.compile(rb"(.+)#([1-9]\d{0,2})", re.DOTALL)
_HEAD = b'{"version":2,"type":"part",'


@dataclass(frozen=True, slots=True)
class _Part:
    """One part.

    Attributes:
        id: SHA-256 of the whole text, UTF-8.
        number: from 1 to `parts`.
    """

    version: Literal[2]
    type: Literal["part"]
    id: Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{64}$")]
    number: Annotated[int, Field(strict=True, ge=1, le=MAX_PARTS)]
    parts: Annotated[int, Field(strict=True, ge=1, le=MAX_PARTS)]
    text: Annotated[str, Field(strict=True, min_length=1)]


_FORM = TypeAdapter(_Part)


def records_of(message: Message, most_bytes: int = MAX_BYTES, part_characters: int = PART_CHARACTERS) -> list[Record]:
    """Records of a message, in the order in which they are to be written; its place is that of the last one.

    Args:
        message: to be written.
        most_bytes: what is not larger is one record.
        part_characters: of the text of each part, but the last one.

    Raises:
        ProtocolError: the message cannot be sent: a value out of its limits, or more than `MAX_PARTS`.
    """
    key, value = encode(message)
    if value is None or len(value) <= most_bytes:
        return [(key, value)]
    text = value.decode()
    texts = [text[at : at + part_characters] for at in range(0, len(text), part_characters)]
    if len(texts) > MAX_PARTS:
        raise ProtocolError(f"{type(message).__name__}: {len(value)} bytes are too many: use fewer partitions")
    whole = sha256(value).hexdigest()
    parts = (_Part(_VERSION, "part", whole, number, len(texts), each) for number, each in enumerate(texts, 1))
    return [(part_key(key, part.number), to_json(part)) for part in parts]


def part_key(key: bytes, number: int) -> bytes:
    """Key of a part of the message with this key; the first one has the message's own."""
    return key if number == 1 else key + b"#%d" % number


def leftover_keys(key: bytes, count: int, before: int) -> list[bytes]:
    """Keys that are left over where a message of `count` records follows one of `before`."""
    return [part_key(key, number) for number in range(count + 1, before + 1)]


def note_parts(counts: dict[bytes, int], key: bytes, number: int) -> None:
    """Note that there is, or may be, a part of this number; a message in one record leaves nothing to be noted."""
    if number > 1:
        counts[key] = max(number, counts.get(key, 1))


@dataclass(slots=True)
class _Begun:
    """A message of which the first parts have come."""

    id: str
    parts: int
    texts: list[str] = field(default_factory=list)
    size: int = 0


class PartsReader:
    """Reader of one partition's records in their order, of which several may carry one message.

    Attributes:
        counts: key of a message -> the highest number of a part of it that was read.
    """

    def __init__(
        self,
        dropped: Callable[[ProtocolError], None],
        counts: dict[bytes, int] | None = None,
        most_held: int = MOST_HELD_CHARACTERS,
    ) -> None:
        """Nothing read yet.

        Args:
            dropped: is told of parts whose others did not come.
            counts: to note there, if somebody else is to know.
            most_held: of these, characters held at a time.
        """
        self._dropped = dropped
        self._most_held = most_held
        self._begun: dict[bytes, _Begun] = {}
        self.counts: dict[bytes, int] = {} if counts is None else counts

    def take(self, key: bytes | None, value: bytes | None) -> Message | None:
        """The message that the record carries or completes; None: there is more to come, or nothing in it.

        Raises:
            ProtocolError: it is no record of ours, or a part without those before it, or the parts do not fit.
        """
        if key is not None and value is not None and value.startswith(_HEAD):
            return self._take_part(key, _part_of(value))
        if value is None and key is not None and _PART_KEY.fullmatch(key):
            return None  # a left-over part was removed
        message = decode(key, value)
        if key is not None:
            self._drop(key)
        return message

    def _take_part(self, key: bytes, part: _Part) -> Message | None:
        named = _PART_KEY.fullmatch(key)
        key, number = (named[1], int(named[2])) if named else (key, 1)
        if number != part.number or number > part.parts:
            raise ProtocolError(f"record's key {key[:100]!r} does not fit: part {part.number} of {part.parts}")
        note_parts(self.counts, key, number)
        if number == 1:
            self._drop(key)
            self._begun[key] = _Begun(part.id, part.parts)
        begun = self._begun.get(key)
        if begun is None or (begun.id, begun.parts, len(begun.texts)) != (part.id, part.parts, number - 1):
            if begun is not None and begun.id == part.id:
                self._drop(key)  # parts come in their order, so the one that is missing will not come
            raise ProtocolError("part of a message whose parts before it are not there: an older one, or half a write")
        begun.texts.append(part.text)
        begun.size += len(part.text)
        if number < part.parts:
            self._make_room()
            return None
        del self._begun[key]
        value = "".join(begun.texts).encode()
        if sha256(value).hexdigest() != part.id:
            raise ProtocolError(f"message of {part.parts} parts: they do not fit each other")
        return decode(key, value, limit=len(value))

    def _make_room(self) -> None:
        while sum(begun.size for begun in self._begun.values()) > self._most_held:
            self._drop(next(iter(self._begun)))

    def _drop(self, key: bytes) -> None:
        begun = self._begun.pop(key, None)
        if begun is not None:
            self._dropped(ProtocolError("message of which only the first parts have come: half a write"))


def _part_of(value: bytes) -> _Part:
    if len(value) > MAX_BYTES:
        raise ProtocolError(f"record of {len(value)} bytes: more than {MAX_BYTES}")
    try:
        return _FORM.validate_json(value)
    except ValidationError as e:
        first = e.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(each) for each in first["loc"])
        raise ProtocolError(f"record is no part of a message: {place}: {first['msg']}") from e
