"""`kgs control` before it has reached Kafka, and what it reaches it with."""

from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError, TransientError
from kgs_core.fleet.controller_fleet import FleetOptions
from kgs_core.fleet.fleets import FLEETS
from kgs_core.group.topics import connections
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.runtime import local_controller
from kgs_core.system.shutdown import StopFlag
from tests.configuration import settings_of

SETTINGS = settings_of()


@pytest.fixture
def fleet(tmp_path):
    return FLEETS["local"](SETTINGS, FleetOptions(tmp_path / "kgs.yaml", tmp_path / "logs"))


def test_a_controller_waits_for_a_kafka_that_is_away_until_it_is_asked_to_end(fleet, monkeypatch, caplog):
    """A supervisor would start it again and again; it says once what it waits for."""
    stop, asked = StopFlag(), []

    def no_answer(*_):
        asked.append(1)
        if len(asked) == 3:
            stop.set()
        raise TransientError("Kafka 127.0.0.1:9: no answer", 0.0)

    monkeypatch.setattr(KafkaAdmin, "describe", no_answer)
    local_controller.look_after(SETTINGS, fleet, stop)
    assert len(asked) == 3
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["waiting: Kafka 127.0.0.1:9: no answer"]


def test_a_controller_that_kafka_refuses_ends(fleet, monkeypatch):
    def refused(*_):
        raise PermanentError("Kafka 127.0.0.1:9: refused")

    monkeypatch.setattr(KafkaAdmin, "describe", refused)
    with pytest.raises(PermanentError, match="refused"):
        local_controller.look_after(SETTINGS, fleet, StopFlag())


def test_a_controller_can_end_transactions_that_kafka_leaves_hanging(fleet, monkeypatch):
    topics = SimpleNamespace(settings=SETTINGS, name=str, extra_time_s=0.0)
    monkeypatch.setattr(connections, "create_topics", lambda *_: None)
    monkeypatch.setattr(connections, "GroupTopics", lambda *_: topics)
    monkeypatch.setattr(local_controller, "MeasurementThread", lambda _: nullcontext())
    with ExitStack() as held:
        assert local_controller._connect(SETTINGS, fleet, held).reader._hanging is not None
