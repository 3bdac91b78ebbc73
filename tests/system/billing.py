"""What `kgs bill` says of a group that a test has seen run."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

Kgs = Callable[..., "subprocess.CompletedProcess[str]"]
"""Runs a command of a user with the group's configuration, which must succeed."""


@contextmanager
def billed(kgs: Kgs) -> Iterator[None]:
    """The bill of the block: between one consumer and two, who handed over to each other."""
    began_at = datetime.now(UTC)  # noqa: TID251 - brokers go by real time
    yield
    ended_at = datetime.now(UTC)  # noqa: TID251 - brokers go by real time
    hours = (ended_at - began_at).total_seconds() / 3600
    since = ["--since", began_at.isoformat(), "--until", ended_at.isoformat(), "--interval", "1"]
    found = json.loads(kgs("bill", *since, "--price", "2", "--json").stdout)
    assert found["known_s"] <= 3600 * hours
    known_h = found["known_s"] / 3600
    assert known_h < found["used_consumer_hours"] < 2 * known_h
    assert found["used_cost"] == pytest.approx(2 * found["used_consumer_hours"], abs=1e-5)
    assert any("the first report is of" in note for note in found["notes"])
    assert found["moves"]["moved"] >= 2
    assert found["moves"]["unread_bytes"] > 0
    assert found["moves"]["iterations"] == pytest.approx(found["moves"]["unread_bytes"] / 100_000, rel=0.01)
    rows = {row["name"]: row["consumer_hours"] for row in found["compared"]}
    assert list(rows) == ["used", "search", "kafka", "keda", "mwf", "least"]
    assert 0 < rows["least"] <= rows["search"]
    assert 0.7 * known_h <= found["compared_s"] / 3600 <= 1.1 * known_h
    nothing = json.loads(kgs("bill", "--day", "2026-01-01", "--json").stdout)
    assert (nothing["used_consumer_hours"], nothing["used_cost"], nothing["compared"]) == (None, None, [])
    assert any("who ran is not known" in note for note in nothing["notes"])
