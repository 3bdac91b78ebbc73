"""Recorded speeds and assignments: what is read, and how what is wrong is named."""

import pytest

from kgs_core.errors import ConfigError
from kgs_core.model import TopicPartition
from kgs_core.monitor.speeds.recorded import RecordedMeasurement, parse_assignment, parse_measurements

A0, A10, B1 = TopicPartition("a", 0), TopicPartition("a", 10), TopicPartition("b.c", 1)
SPEEDS = "give bytes/s from 0 to 1e+15"


def problem_of(read, text):
    with pytest.raises(ConfigError) as caught:
        read(text, "f")
    (problem,) = caught.value.problems
    return problem.removeprefix("f: ")


def test_json_lines():
    text = (
        '{"time": 5, "speeds": {"a": {"0": 1, "10": 2.5}}}\n\n{"time": 5.5, "speeds": {"b.c": {"1": 0}, "a": {}}}\r\n'
    )
    assert parse_measurements(text, "f") == (
        RecordedMeasurement(5.0, {A0: 1.0, A10: 2.5}),
        RecordedMeasurement(5.5, {B1: 0.0}),
    )


def test_a_byte_order_mark_is_no_content():
    text = '{"time": 0, "speeds": {"a": {"0": 1}}}'
    assert parse_measurements(f"\ufeff{text}", "f") == parse_measurements(text, "f")
    assert parse_assignment("\ufeff{}", "f") == {}


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff"])
def test_nothing_in_it(text):
    assert problem_of(parse_measurements, text) == (
        'no measurement in it: give JSON lines, {"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}'
    )


def line(speeds, time="1"):
    return f'{{"time": {time}, "speeds": {speeds}}}'


NUMBER = "give a number from 0 to 2147483647"
TIME = "give seconds since 1970"
TOO_MUCH = "no JSON that can be read: a number is too long, or brackets are too deep"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (line('{"a": {"0": NaN}}'), f"a:0: nan: {SPEEDS}"),
        (line('{"a": {"0": -0.5}}'), f"a:0: -0.5: {SPEEDS}"),
        (line('{"a": {"0": 1e16}}'), f"a:0: 1e+16: {SPEEDS}"),
        (line('{"a": {"0": 1e999}}'), f"a:0: inf: {SPEEDS}"),
        (line('{"a": {"0": -Infinity}}'), f"a:0: -inf: {SPEEDS}"),
        (line('{"a": {"0": true}}'), f"a:0: true: {SPEEDS}"),
        (line('{"a": {"0": null}}'), f"a:0: null: {SPEEDS}"),
        (line('{"a": {"0": "1"}}'), f"a:0: '1': {SPEEDS}"),
        (line('{"b": {"0": 1}, "a": {"1": 2, "0" :\t[1]}}'), f"a:0: a list: {SPEEDS}"),
        (line('{"a": {"0": 1, "0": 2}}'), "'0' stands here twice: name it once"),
        (line('{"a": {"0": 1}, "a": {}}'), "'a' stands here twice: name it once"),
        (line('{"a": {"00": 1}}'), f"a: partition '00': {NUMBER}"),
        (line('{"a": {"-1": 1}}'), f"a: partition '-1': {NUMBER}"),
        (line('{"a": {"2147483648": 1}}'), f"a: partition '2147483648': {NUMBER}"),
        (line('{"a/b": {"0": 1}}'), "'a/b': no legal topic name"),
        (line('{"a": 3}'), 'a: 3: write {"0": bytes_per_s}'),
        (line("[]"), 'a list: write {topic: {"0": bytes_per_s}}'),
        (line("{}", "-1"), f"time -1: {TIME}"),
        (line("{}", "NaN"), f"time nan: {TIME}"),
        (line("{}", '"now"'), f"time 'now': {TIME}"),
        (f"{line('{}')}\n\n{line('{}', '0.5')}",
         "time 0.5 is before that of an earlier line: put the lines in order"),
        ('{"time": 1}', "has time: write exactly 'time' and 'speeds'"),
        ('{"time": 1, "time": 2}', "'time' stands here twice: name it once"),
        (f"{line('{}')}\n{{,", "column 2: no JSON: Expecting property name enclosed in doub"),
        ('[{"time": 1}]', 'a list: write {"time": seconds, "speeds": {topic: {"0": bytes_per_s}}}'),
        (f'{line("9" * 5000)}', TOO_MUCH),
        ("[" * 100_000, TOO_MUCH),
    ],
)  # fmt: skip
def test_wrong_json_lines(text, problem):
    """The last line is the wrong one."""
    where = f"line {text.count(chr(10)) + 1}"
    assert problem_of(parse_measurements, text).replace(f"{where}, ", f"{where}: ") == f"{where}: {problem}"


def test_an_assignment():
    assert parse_assignment('{\n "b.c": {"1": 3},\n "a": {"10": 1, "0": 2}\n}', "f") == {B1: 3, A10: 1, A0: 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{\n "a": {"0": 0}\n}', "a:0: 0: give the number of a consumer, 1 to 2147483647"),
        ('{"a": {"0": 1.0}}', "a:0: 1.0: give the number of a consumer, 1 to 2147483647"),
        ('{"a": {"0": 2147483648}}', "a:0: 2147483648: give the number of a consumer"),
        ("[]", 'a list: write {topic: {"0": consumer}}'),
        ("", "line 1, column 1: no JSON: Expecting value"),
        ('{"a": {}} x', "line 1, column 11: no JSON: Extra data"),
    ],
)
def test_wrong_assignments(text, problem):
    assert problem_of(parse_assignment, text).startswith(problem)
