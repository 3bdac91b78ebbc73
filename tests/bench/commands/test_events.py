"""`bench events`: a small group at rest, every kind of event."""

import pytest
from click.testing import CliRunner

from bench import controller_events
from bench.commands.events import bench_events
from bench.controller_events import EVENTS, time_events
from kgs_core.errors import PermanentError


def test_every_kind_of_event_has_a_line():
    done = CliRunner().invoke(bench_events, ["--partitions", "40", "--consumers", "4", "--seconds", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines()]
    assert [row[:2] for row in rows if row and row[0] in EVENTS] == [
        ["heartbeats", "20"],
        ["fleet", "4"],
        ["measurement", "2"],
        ["tick", "2"],
    ]


def test_a_group_that_is_changed_is_no_group_at_rest(monkeypatch):
    monkeypatch.setattr(controller_events, "_FILLED", 0.95)  # more than its readers can have, less than its consumers
    with pytest.raises(PermanentError, match="changes the group"):
        time_events(40, 4, 1)
