"""YAML text to plain values, with bounds: a hostile or broken file gets a line and a reason, never our memory."""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from kgs_core.errors import ConfigError

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
MAX_NODES = 10_000
"""Values once every alias is written out: nested aliases grow by powers, so that counting aliases bounds nothing."""

_PLAIN_TAG = re.compile(r"tag:yaml\.org,2002:(str|int|float|bool|null|seq|map)")
_ODD = (
    (re.compile(r"[-+]?0[0-7_]+"), "a number with a 0 in front is one of base 8 in YAML"),
    (re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"), "a number with colons is one of base 60 in YAML"),
)
_HALVES = re.compile(r"[\ud800-\udfff]")
_MERGE = "tag:yaml.org,2002:merge"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_HARMLESS = re.compile(r"'(<[a-z ]+>|\\?.)'")
"""What PyYAML quotes that is no value: a kind of token, or one character."""


def load_tree(data: bytes, source: str) -> object:
    """The value of one YAML document; None when there is none.

    Args:
        data: UTF-8, at most 1 MiB.

    Raises:
        ConfigError: too big, too deep, not UTF-8, not YAML, a doubled key, a tag. Never quotes a value: an unquoted
            password that begins with `!` or `*` is such an error too.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError([f"{source}: larger than {MAX_BYTES} bytes: a configuration is not"])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise ConfigError([f"{source}: byte {e.start} is not UTF-8: save the file as UTF-8"]) from None
    try:
        _check(yaml.parse(text, Loader=yaml.SafeLoader), source)
        tree: object = _Loader(text).get_single_data()
    except yaml.YAMLError as e:
        raise ConfigError([f"{source}: {_reason(e)}"]) from None
    except ValueError:  # PyYAML takes 2026-02-31 for a date, and then it is none
        raise ConfigError([f"{source}: a value looks like a date or a number and is none: put it in quotes"]) from None
    return tree


class _Loader(yaml.SafeLoader):
    """Refuses keys of one mapping that are written unlike and come to the same: `1` and `true`, `16` and `0x10`."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        keys = [key for key, _ in node.value if key.tag != _MERGE]
        found = super().construct_mapping(node, deep=deep)
        seen: dict[Hashable, str] = {}
        for key in keys:
            first = seen.setdefault(self.construct_object(key), key.value)
            if first != key.value:
                problem = f"keys {first[:80]} and {key.value[:80]} are one: keep one of them"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
        return found


@dataclass
class _Open:
    """A collection whose end has not come yet."""

    anchor: str | None
    is_mapping: bool
    size: int = 1
    children: int = 0
    keys: set[str] = field(default_factory=set)


def _check(events: Iterable[yaml.Event], source: str) -> None:
    """Refuse what would be dear or ambiguous to construct, before anything is constructed."""
    stack: list[_Open] = []
    sizes: dict[str, int] = {}  # of finished anchors only: an alias inside its own anchor has no end
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            _check_tag(event, source)
            sizes.pop(event.anchor or "", None)
            stack.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            if len(stack) > MAX_DEPTH:
                _refuse(source, event, f"nested deeper than {MAX_DEPTH}")
            continue
        size = _size(event, stack, sizes, source)
        if size and stack:
            stack[-1].size += size
            stack[-1].children += 1
            if stack[-1].size > MAX_NODES:
                _refuse(source, event, f"more than {MAX_NODES} values (aliases written out)")


def _size(event: yaml.Event, stack: list[_Open], sizes: dict[str, int], source: str) -> int:
    """How many values the event completes; 0 for one that completes none."""
    if isinstance(event, yaml.CollectionEndEvent):
        done = stack.pop()
        if done.anchor:
            sizes[done.anchor] = done.size
        return done.size
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in sizes:
            _refuse(source, event, "an alias without its anchor: put a value that begins with '*' in quotes")
        return sizes[event.anchor]
    if isinstance(event, yaml.ScalarEvent):
        _check_tag(event, source)
        _check_text(event, source)
        if event.anchor:
            sizes[event.anchor] = 1
        if stack:
            _check_key(event, stack[-1], source)
        return 1
    return 0


def _check_key(event: yaml.ScalarEvent, parent: _Open, source: str) -> None:
    """YAML's last-one-wins for doubled keys hides mistakes; here they are errors."""
    if parent.is_mapping and parent.children % 2 == 0:
        if event.value in parent.keys:
            _refuse(source, event, f"duplicate key '{event.value[:80]}': keep one of them")
        parent.keys.add(event.value)


def _check_text(event: yaml.ScalarEvent, source: str) -> None:
    """Refuse what another reader, or the eye, takes for something else, and what no file or topic can hold."""
    if event.implicit[0]:
        for form, problem in _ODD:
            if form.fullmatch(event.value):
                _refuse(source, event, f"{problem}: put it in quotes, or write it as a plain number")
    if _HALVES.search(event.value):
        _refuse(source, event, "a text with half a character (\\ud800 to \\udfff): write the whole character")


def _check_tag(event: yaml.NodeEvent, source: str) -> None:
    tag = getattr(event, "tag", None)
    if tag not in (None, "!") and not _PLAIN_TAG.fullmatch(tag):
        _refuse(source, event, "tags are not allowed: put a value that begins with '!' in quotes")


def _refuse(source: str, event: yaml.Event, problem: str) -> NoReturn:
    line = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
    raise ConfigError([f"{source}: {line}{problem}"])


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    shown = _QUOTED.sub(lambda quoted: quoted.group() if _HARMLESS.fullmatch(quoted.group()) else "...", problem)
    return f"{where}{shown}"
