"""JSON texts in which every value's place is known, so that a message can name it."""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from kgs_core.errors import ConfigError

_BLANK = re.compile(r"[ \t\r\n]*")
_MAX_SHOWN = 40


class JsonObject(dict[str, Any]):
    """An object; `doubled` is a key that stands in it twice, which JSON leaves undefined."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.doubled: str | None = None
        if len(self) < len(pairs):
            keys = [key for key, _ in pairs]
            self.doubled = next(key for i, key in enumerate(keys) if key in keys[:i])


class JsonText:
    """One JSON text of a file.

    Attributes:
        value: what the text says; objects are `JsonObject`.

    Raises:
        ConfigError: it is no JSON, or has numbers too long or brackets too deep to read.
    """

    def __init__(self, text: str, source: str, first_line: int = 1) -> None:
        """Read `text`, which begins at `first_line` of the file that messages call `source`."""
        self._text = text
        self._source = source
        self._first_line = first_line
        self._decoder = json.JSONDecoder(object_pairs_hook=JsonObject)
        try:
            self.value: Any = self._decoder.decode(text)
        except json.JSONDecodeError as e:
            self._refuse_at(e.pos, f"no JSON: {e.msg[:_MAX_SHOWN]}")
        except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
            self._refuse_at(0, "no JSON that can be read: a number is too long, or brackets are too deep")

    def mapping(self, path: Sequence[str], what: str) -> JsonObject:
        """The object that `path` leads to.

        Args:
            path: keys from the outermost object inwards.
            what: what to write there instead of anything else.

        Raises:
            ConfigError: it is no object, or a key stands in it twice.
        """
        value = self.value
        for key in path:
            value = value[key]
        if not isinstance(value, JsonObject):
            self.refuse(path, f"{shown(value)}: {what}")
        if value.doubled is not None:
            self.refuse((*path, value.doubled), f"{shown(value.doubled)} stands here twice: name it once")
        return value

    def refuse(self, path: Sequence[str], what: str) -> NoReturn:
        """Raise what is wrong with the value that `path` leads to, with its line and column."""
        place = self._skip(0)
        for key in path:
            place = self._member(place, key)
        self._refuse_at(place, what)

    def _member(self, place: int, key: str) -> int:
        """Where the value of `key` begins in the object at `place`; of a doubled key the last one."""
        found = place
        place = self._skip(place + 1)
        while self._text[place] == '"':
            name, place = self._decoder.raw_decode(self._text, place)
            place = self._skip(self._skip(place) + 1)
            if name == key:
                found = place
            _, place = self._decoder.raw_decode(self._text, place)
            place = self._skip(place)
            if self._text[place] == ",":
                place = self._skip(place + 1)
        return found

    def _skip(self, place: int) -> int:
        match = _BLANK.match(self._text, place)
        return match.end() if match else place

    def _refuse_at(self, place: int, what: str) -> NoReturn:
        line = self._first_line + self._text.count("\n", 0, place)
        column = place - self._text.rfind("\n", 0, place)
        raise ConfigError([f"{self._source}: line {line}, column {column}: {what}"])


def shown(value: object) -> str:
    """A value as a message shows it: cut when it is long."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
