"""Whether the native fetch fits this librdkafka and this machine."""

import pytest
from confluent_kafka import KafkaException

from kgs_core.errors import PermanentError
from kgs_core.ingest.fetch import library as native_library
from kgs_core.ingest.fetch.library import NativeClient, UnfitLibraryError, check_fit
from kgs_core.ingest.fetch.session import NativeFetchSession

NOWHERE = {"bootstrap.servers": "127.0.0.1:9", "group.id": "none", "log_level": 0}


def test_setting_that_librdkafka_refuses_is_an_error():
    with pytest.raises(KafkaException, match="No such configuration property"):
        NativeFetchSession({**NOWHERE, "no.such.setting": "x"})
    with pytest.raises(KafkaException):
        NativeClient({**NOWHERE, "security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"})


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("session.calls", UnfitLibraryError("librdkafka 2.99.0 has no rd_kafka_message_leader_epoch")),
        ("session.machine_code", PermanentError("cache /c: read-only: point KGS_CACHE at a directory to write in")),
    ],
)
def test_where_records_cannot_be_fetched_nothing_is_read_and_the_error_says_why(monkeypatch, name, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(f"kgs_core.ingest.fetch.{name}", fail)
    with pytest.raises(PermanentError, match=r"install the wheel of confluent-kafka|point KGS_CACHE at"):
        NativeFetchSession(NOWHERE)


@pytest.mark.parametrize(
    ("found", "more", "words"),
    [
        (0x020E0000, {}, "Python's client uses 0x021000ff"),
        (0x030000FF, {"expected": 0x030000FF}, "major version is not 2"),
        (0x021000FF, {"bits": 32}, "32 bits"),
        (0x021000FF, {"order": "big"}, "big-endian"),
    ],
)
def test_library_that_does_not_fit_is_refused_before_it_is_used(found, more, words):
    expected = more.pop("expected", 0x021000FF)
    with pytest.raises(UnfitLibraryError, match=words):
        check_fit(found, expected, **more)


def test_function_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(native_library._SIGNATURES, "rd_kafka_no_such_thing", (None, []))
    with pytest.raises(UnfitLibraryError, match="has no rd_kafka_no_such_thing"):
        native_library.library.__wrapped__()
