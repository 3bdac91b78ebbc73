"""Recorded measurements and assignments: from the text of a file to values, every wrong row named by its place."""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar

from kgs_core.config.rule.topic_names import is_topic_name
from kgs_core.errors import ConfigError
from kgs_core.model import Assignment, ConsumerId, TopicPartition, WriteSpeeds

MAX_SPEED = 1e15
"""Bytes/s. No disk or network is as fast, so whatever is above is no measurement."""
MAX_NUMBER = 2**31 - 1
"""Kafka's greatest partition number; the greatest consumer number, too."""

_MAX_SHOWN = 40
T = TypeVar("T")
_FORM = '{"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}'
_ALLOWED = {
    "consumer": f"give the number of a consumer, 1 to {MAX_NUMBER}",
    "bytes_per_s": f"give bytes/s from 0 to {MAX_SPEED:g}",
}
_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class RecordedMeasurement:
    """Write speeds of one moment.

    Attributes:
        time: seconds since 1970; it never goes back in a file.
        speeds: bytes/s.
    """

    time: float
    speeds: WriteSpeeds


def parse_measurements(text: str, source: str) -> tuple[RecordedMeasurement, ...]:
    """Measurements in the order of the file, at least one; a plan is made for the last.

    They are JSON lines, `{"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}`.

    Raises:
        ConfigError: the first thing that is wrong, with its line: a speed that is no number, NaN, negative or above
            `MAX_SPEED`; something named twice; time going back; an unknown or missing part; nothing at all.
    """
    found = tuple(_json_lines(text.removeprefix("\ufeff"), source))
    if not found:
        raise ConfigError([f"{source}: no measurement in it: give JSON lines, {_FORM}"])
    return found


def parse_assignment(text: str, source: str) -> Assignment:
    """The assignment in a JSON document `{topic: {"0": consumer}}`; the first thing wrong is a `ConfigError`."""
    return _partitions(_json(text.removeprefix("\ufeff"), source, source), source, "consumer", _consumer)


class _DoubledKeyError(Exception):
    """A key stands in an object twice, which JSON leaves undefined."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _DoubledKeyError(next(key for i, key in enumerate(keys) if key in keys[:i]))
    return found


def _json(text: str, source: str, place: str, first_line: int = 1) -> Any:
    """What a JSON text, which begins in `first_line` of the file, says."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _DoubledKeyError as e:
        raise ConfigError([f"{place}: {_shown(str(e))} stands here twice: name it once"]) from None
    except json.JSONDecodeError as e:
        where = f"line {first_line + e.lineno - 1}, column {e.colno}"
        raise ConfigError([f"{source}: {where}: no JSON: {e.msg[:_MAX_SHOWN]}"]) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or thousands of brackets
        what = "no JSON that can be read: a number is too long, or brackets are too deep"
        raise ConfigError([f"{place}: {what}"]) from None


def _json_lines(text: str, source: str) -> Iterator[RecordedMeasurement]:
    last = 0.0
    # not `splitlines`: it parts at characters that may stand inside a JSON text
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}: line {number}"
        record = _object(_json(line, source, place, number), place, _FORM)
        if record.keys() != {"time", "speeds"}:
            raise ConfigError([f"{place}: has {', '.join(record) or 'nothing'}: write exactly 'time' and 'speeds'"])
        time = record["time"]
        if not _is_number(time) or not 0 <= time < math.inf:
            raise ConfigError([f"{place}: time {_shown(time)}: give seconds since 1970"])
        if time < last:
            raise ConfigError(
                [f"{place}: time {_shown(time)} is before that of an earlier line: put the lines in order"]
            )
        last = float(time)
        yield RecordedMeasurement(last, _partitions(record["speeds"], place, "bytes_per_s", _speed))


def _partitions(values: object, place: str, noun: str, read: Callable[[object], T | None]) -> dict[TopicPartition, T]:
    """The values of an object `{topic: {partition: value}}`; `read` gives None for a value that cannot be."""
    found: dict[TopicPartition, T] = {}
    for topic, partitions in _object(values, place, f'{{topic: {{"0": {noun}}}}}').items():
        if not is_topic_name(topic):
            raise ConfigError([f"{place}: {_shown(topic)}: no legal topic name"])
        for key, value in _object(partitions, f"{place}: {topic}", f'{{"0": {noun}}}').items():
            if not _is_whole(key):
                raise ConfigError([f"{place}: {topic}: partition {_shown(key)}: give a number from 0 to {MAX_NUMBER}"])
            good = read(value)
            if good is None:
                raise ConfigError([f"{place}: {topic}:{key}: {_shown(value)}: {_ALLOWED[noun]}"])
            found[TopicPartition(topic, int(key))] = good
    return found


def _object(value: object, place: str, form: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError([f"{place}: {_shown(value)}: write {form}"])
    return value


def _shown(value: object) -> str:
    """A value as a message shows it: cut when it is long."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _is_whole(text: str) -> bool:
    return _WHOLE.fullmatch(text) is not None and int(text) <= MAX_NUMBER


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _speed(value: object) -> float | None:
    return float(value) if _is_number(value) and 0 <= value <= MAX_SPEED else None


def _consumer(value: object) -> ConsumerId | None:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NUMBER:
        return ConsumerId(value)
    return None
