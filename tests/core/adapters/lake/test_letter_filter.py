"""Conditions that choose dead letters; what they choose, `test_redrive` says."""

import pytest

from kgs_core.adapters.lake.letter_filter import parse_conditions
from kgs_core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("partition", "write NAME=VALUE"),
        ("colour=red", "no such name: use one of partition, offset"),
        ("partition~3", "partition is compared by one of"),
        ("offset=many", "must be a whole number"),
        ("timestamp>=2026-01-01", "a time with its offset"),
    ],
)
def test_conditions_that_say_nothing_are_refused(text, problem):
    with pytest.raises(ConfigError, match=problem):
        parse_conditions([text])
