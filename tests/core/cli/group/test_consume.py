"""What `kgs consume` says before it begins to read."""

import logging
from types import SimpleNamespace

from kgs_core.cli.group.consume import _warn_of_missing
from kgs_core.errors import TransientError
from kgs_core.group.membership.share import parse_partitions
from kgs_core.kafka import admin
from tests.configuration import settings_of


def test_partitions_that_are_not_there_are_reported(monkeypatch, caplog):
    monkeypatch.setattr(admin.KafkaAdmin, "describe", lambda *_: {"t": SimpleNamespace(partitions=3)})
    with caplog.at_level(logging.WARNING):
        _warn_of_missing(settings_of(), parse_partitions("t:0-9"))
    assert [record.getMessage() for record in caplog.records] == [
        "--partitions: t:3-9: not there: the topic has 3 partitions; read once it is"
    ]


def test_kafka_that_does_not_answer_is_left_to_the_consumer(monkeypatch, caplog):
    def away(*_):
        raise TransientError("away", retry_after_s=1.0)

    monkeypatch.setattr(admin.KafkaAdmin, "describe", away)
    _warn_of_missing(settings_of(), parse_partitions("t:0-9"))
    assert caplog.records == []
