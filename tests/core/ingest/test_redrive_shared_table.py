"""Dead letters of a table that several topics fill: each is parsed by the rule of its own topic."""

import pyarrow as pa
import pytest

from kgs_core.errors import ConfigError, PermanentError
from kgs_core.ingest.replay import redrive
from kgs_core.ingest.replay.redrive import Redrive
from tests.core.lake.test_shared_table import audited, settings_of, sinks_of
from tests.kgs_yaml import LONGS
from tests.sink import FakeRecord


def fill(storage, monkeypatch):
    """Two dead letters of each topic, a's no JSON and b's a text for a number."""
    a, b = sinks_of(storage)
    a.ingest({0: (0, 10)})
    monkeypatch.setattr(FakeRecord, "value", lambda record: b'{"n": "7"}' if record.at % 5 == 4 else good(record))
    b.ingest({0: (0, 10)})


def hooked(topic, hook):
    return {"topic": topic, "table": "t", "transform_arrow": f"{__name__}:{hook}"}


def test_dead_letters_are_redriven_by_the_rule_of_their_topic(storage, monkeypatch):
    """What was no JSON for either is mended for topic b: it is text that its rule's transform now knows."""
    fill(storage, monkeypatch)
    rules = {"topic": "a", "table": "t", **LONGS}, hooked("b", "mended")
    found = Redrive(settings_of(storage, *rules), "t").run()
    assert (found.letters, found.passed, found.failed["not_json"]) == (4, 2, 2)
    found = Redrive(settings_of(storage, *rules), "t").run()
    assert (found.passed, found.done) == (0, 2)
    assert {topic: (t.ok, t.rows) for topic, t in audited(storage).items()} == {"a": (True, 8), "b": (True, 10)}


@pytest.mark.parametrize(("hook", "problem"), [("raises", "not today"), ("mended", "no schema for the topic")])
def test_a_topic_whose_letters_cannot_be_redriven_stops_no_other_one(storage, monkeypatch, hook, problem):
    fill(storage, monkeypatch)
    find = redrive.columns_of

    def columns_of(spec, lake):
        """As of a topic whose subject is gone from the registry."""
        if spec.topic == "a" and hook != "raises":
            raise ConfigError(["topic a: the registry has no schema for the topic"])
        return find(spec, lake)

    monkeypatch.setattr(redrive, "columns_of", columns_of)
    redriving = Redrive(settings_of(storage, hooked("a", hook), hooked("b", "mended")), "t")
    with pytest.raises((PermanentError, ConfigError), match=problem):
        redriving.run()
    assert {topic: (t.ok, t.rows) for topic, t in audited(storage).items()} == {"a": (True, 8), "b": (True, 10)}


def test_dead_letters_of_a_topic_without_a_rule_stay(storage):
    a, b = sinks_of(storage)
    a.ingest({0: (0, 10)})
    b.ingest({0: (0, 10)})
    found = Redrive(settings_of(storage, {"topic": "a", "table": "t", **LONGS}), "t").run()
    assert (found.letters, found.unsettled, found.failed["not_json"]) == (4, 2, 2)


def good(record):
    return b'{"n": %d}' % record.at


def raises(rows, topic):
    raise ValueError("not today")


def mended(rows, topic):
    """Rows of raw values -> those of the table."""
    import json

    numbers = [int(json.loads(value)["n"]) for value in rows["value"].to_pylist()]
    return rows.drop_columns(["value"]).append_column("n", pa.array(numbers, pa.int64()))
