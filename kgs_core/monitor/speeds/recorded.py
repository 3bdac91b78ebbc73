"""Recorded measurements and assignments: from the text of a file to values, every wrong row named by its place."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard, TypeVar

from kgs_core.config.rule.topic_names import is_topic_name
from kgs_core.errors import ConfigError
from kgs_core.model import Assignment, ConsumerId, TopicPartition, WriteSpeeds

CSV_HEADER = ("measurement", "topic", "partition", "speed")
MAX_SPEED = 1e15
"""Bytes/s. No disk or network is as fast, so whatever is above is no measurement."""
MAX_NUMBER = 2**31 - 1
"""Kafka's greatest partition number; the greatest consumer number, too."""

_MAX_SHOWN = 40
T = TypeVar("T")
_HEADING = ",".join(CSV_HEADER)
_ALLOWED = {
    "consumer": f"give the number of a consumer, 1 to {MAX_NUMBER}",
    "bytes_per_s": f"give bytes/s from 0 to {MAX_SPEED:g}",
}
_WHOLE = re.compile(r"0|[1-9][0-9]{0,9}")
_DECIMAL = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class RecordedMeasurement:
    """Write speeds of one moment.

    Attributes:
        time: seconds since 1970 (JSON lines) or the measurement's number (CSV); it never goes back in a file.
        speeds: bytes/s.
    """

    time: float
    speeds: WriteSpeeds


def parse_measurements(text: str, source: str) -> tuple[RecordedMeasurement, ...]:
    """Measurements in the order of the file, at least one; a plan is made for the last.

    Either JSON lines, `{"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}`, or CSV with the heading
    `measurement,topic,partition,speed`, where consecutive rows of one number make up a measurement.

    Raises:
        ConfigError: the first thing that is wrong, with its line: a speed that is no number, NaN, negative or above
            `MAX_SPEED`; something named twice; time going back; an unknown or missing part; nothing at all.
    """
    text = text.removeprefix("\ufeff")
    read = _json_lines if text.lstrip().startswith(("{", "[")) else _csv_measurements
    found = tuple(read(text, source))
    if not found:
        raise ConfigError([f"{source}: no measurement in it: give JSON lines, or CSV with {_HEADING}"])
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
        record = _object(
            _json(line, source, place, number), place, '{"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}'
        )
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


def _csv_measurements(text: str, source: str) -> Iterator[RecordedMeasurement]:
    number: int | None = None
    speeds: dict[TopicPartition, float] = {}
    for row in _csv_rows(text, source):
        measurement = row.whole(0)
        if number is not None and measurement != number:
            if measurement < number:
                row.refuse(0, "is less than the one above: put the rows in order")
            yield RecordedMeasurement(float(number), speeds)
            speeds = {}
        number = measurement
        if not is_topic_name(row.fields[1]):
            row.refuse(1, "no legal topic name")
        partition = TopicPartition(row.fields[1], row.whole(2))
        if partition in speeds:
            row.refuse(2, f"{partition} stands in measurement {number} twice: name it once")
        speeds[partition] = row.speed(3)
    if number is not None:
        yield RecordedMeasurement(float(number), speeds)


@dataclass(frozen=True, slots=True)
class _Row:
    source: str
    line: int
    fields: Sequence[str]

    def whole(self, column: int) -> int:
        if not _is_whole(self.fields[column]):
            self.refuse(column, f"give a whole number from 0 to {MAX_NUMBER}")
        return int(self.fields[column])

    def speed(self, column: int) -> float:
        field = self.fields[column]
        speed = _speed(float(field)) if _DECIMAL.fullmatch(field) else None
        if speed is None:
            self.refuse(column, _ALLOWED["bytes_per_s"])
        return speed

    def refuse(self, column: int, what: str) -> NoReturn:
        name, field = CSV_HEADER[column], _shown(self.fields[column])
        raise ConfigError([f"{self.source}: line {self.line}, column {column + 1} ({name}): {field}: {what}"])


def _csv_rows(text: str, source: str) -> Iterator[_Row]:
    """The rows below the heading, each with four fields without blanks around them."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    heading = False
    try:
        for raw in reader:
            fields = [field.strip() for field in raw]
            if not any(fields):
                continue
            if not heading and tuple(fields) != CSV_HEADER:
                raise ConfigError([f"{source}: line {reader.line_num}, column 1: write the heading {_HEADING} first"])
            if heading and len(fields) != len(CSV_HEADER):
                last = min(len(fields), len(CSV_HEADER))
                what = f"{len(fields)} fields: write {_HEADING}"
                raise ConfigError([f"{source}: line {reader.line_num}, column {last}: {what}"])
            if heading:
                yield _Row(source, reader.line_num, fields)
            heading = True
    except csv.Error as e:
        raise ConfigError([f"{source}: line {reader.line_num}, column 1: no CSV: {e}"]) from None


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
