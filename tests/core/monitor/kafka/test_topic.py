"""How measurements are kept: all for an hour, then one a minute."""

import logging
from types import SimpleNamespace

import pytest

from kgs_core.errors import PermanentError
from kgs_core.monitor.kafka.topic import Publisher, create_topic
from kgs_core.monitor.speeds import Measure, Measurement, Reading

MINUTE_MS = 60_000
COMPACTED = {"cleanup.policy": "compact,delete"}


class Admin:
    """As far as `create_topic` asks it."""

    def __init__(self, found):
        self.found = found
        self.made = None

    def create_topic(self, name, partitions, replication, config):
        self.made = config
        return self.found is None

    def topic_config(self, name):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Producer:
    def __init__(self):
        self.keys = []

    def produce(self, topic, value, key, partition):
        self.keys.append(key)

    def poll(self, timeout_s):
        return 0


def test_the_first_one_of_each_minute_has_a_key_of_its_own(settings):
    publisher = Publisher(settings)
    producer = Producer()
    publisher._made = SimpleNamespace(get=lambda: producer, take=lambda: producer)
    for wall_ms in (0, 1000, 59_999, MINUTE_MS, MINUTE_MS + 1000, 5 * MINUTE_MS + 3):
        publisher.send(Measurement(Reading(wall_ms / 1000, wall_ms, "here", Measure.LOG_DIRS, {}), {}))
    assert producer.keys == [b"minute 0", b"others", b"others", b"minute 1", b"others", b"minute 5"]


def test_the_topic_is_compacted_when_everything_was_there_for_an_hour(settings):
    admin = Admin(None)
    create_topic(settings, admin)
    assert admin.made["cleanup.policy"] == "compact,delete"
    assert admin.made["min.compaction.lag.ms"] == "3600000"
    assert admin.made["retention.ms"] == str(168 * 3_600_000)


@pytest.mark.parametrize(
    ("found", "cure"),
    [
        ({"cleanup.policy": "delete"}, "--add-config cleanup.policy=[compact,delete],min.compaction.lag.ms=3600000"),
        ({**COMPACTED, "max.message.bytes": "1048588"},
         "max.message.bytes is 1048588, must be at least 8388608: `kafka-configs.sh --alter"),
        ({**COMPACTED, "max.message.bytes": "8388608"}, ""),
        ({**COMPACTED, "max.message.bytes": "9000000"}, ""),
        (PermanentError("denied"), ""),
    ],
)  # fmt: skip
def test_a_topic_that_keeps_everything_or_takes_too_little_is_named_with_the_cure(settings, caplog, found, cure):
    with caplog.at_level(logging.WARNING):
        assert not create_topic(settings, Admin(found))
    assert (cure in caplog.text, bool(caplog.text)) == (True, bool(cure))
