"""Alert rules whose times are all shorter by one factor, so that a test need not wait for half an hour."""

import re
from collections.abc import Mapping
from typing import Any

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(?<![\w.])(\d+)([smhd])(?!\w)")
_LIMIT = re.compile(r"(?<=[<>] )(\d+(?:\.\d+)?)(?! *[*/])")


def shortened(rules: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """The rules of a file with each `for`, each window and each limit in seconds divided by `factor`.

    Limits that are no times (partitions, changes, records) stay. So an alert on what happens within a window needs as
    much of it in a shorter time.
    """
    return {
        "groups": [{**group, "rules": [_rule(rule, factor) for rule in group["rules"]]} for group in rules["groups"]]
    }


def _rule(rule: Mapping[str, Any], factor: float) -> dict[str, Any]:
    expression = _DURATION.sub(lambda found: _duration(found, factor), rule["expr"])
    if "_seconds" in expression:  # then what it compares is a time
        expression = _LIMIT.sub(lambda found: f"{float(found[1]) / factor:g}" if float(found[1]) else "0", expression)
    short = {**rule, "expr": expression}
    if "for" in rule:
        short["for"] = _DURATION.sub(lambda found: _duration(found, factor), rule["for"])
    return short


def _duration(found: "re.Match[str]", factor: float) -> str:
    return f"{round(int(found[1]) * _UNITS_S[found[2]] * 1000 / factor)}ms"
