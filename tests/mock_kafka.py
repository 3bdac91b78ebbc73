"""librdkafka's mock cluster, in this process: real clients, no broker, and records that Python's own client refuses."""

import ctypes as c
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka

from kgs_core.config import Settings

TOPIC, VALUE, PARTITION, FLAGS, TIMESTAMP, HEADER = 1, 4, 3, 7, 8, 9  # of librdkafka's rd_kafka_vtype_t
COPY = 2
PRODUCER = 0
ERROR_SIZE = 512


class _Bytes(c.Structure):
    _fields_ = (("data", c.c_char_p), ("size", c.c_size_t))


class _Header(c.Structure):
    _fields_ = (("name", c.c_char_p), ("value", c.c_char_p), ("size", c.c_ssize_t))


class _Any(c.Union):
    _fields_ = (
        ("text", c.c_char_p),
        ("i32", c.c_int32),
        ("i64", c.c_int64),
        ("data", _Bytes),
        ("header", _Header),
        ("room", c.c_char * 64),
    )


class _Argument(c.Structure):
    _fields_ = (("kind", c.c_int), ("value", _Any))


def _library() -> Any:
    """The very librdkafka that Python's client uses."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    lib = c.CDLL(str(next(folder.glob("librdkafka*.so*"))))
    pointer, text, size = c.c_void_p, c.c_char_p, c.c_size_t
    signatures: Mapping[str, tuple[Any, list[Any]]] = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (c.c_int, [pointer, text, text, text, size]),
        "rd_kafka_new": (pointer, [c.c_int, pointer, text, size]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_handle_mock_cluster": (pointer, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_topic_create": (c.c_int, [pointer, text, c.c_int, c.c_int]),
        "rd_kafka_mock_push_request_errors_array": (None, [pointer, c.c_int16, size, c.POINTER(c.c_int)]),
        "rd_kafka_mock_partition_set_leader": (c.c_int, [pointer, text, c.c_int32, c.c_int32]),
        "rd_kafka_mock_broker_set_down": (c.c_int, [pointer, c.c_int32]),
        "rd_kafka_mock_broker_set_up": (c.c_int, [pointer, c.c_int32]),
        "rd_kafka_mock_broker_set_rtt": (c.c_int, [pointer, c.c_int32, c.c_int]),
        "rd_kafka_mock_clear_request_errors": (None, [pointer, c.c_int16]),
        "rd_kafka_flush": (c.c_int, [pointer, c.c_int]),
        "rd_kafka_produceva": (pointer, [pointer, c.POINTER(_Argument), size]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


@dataclass
class MockKafka:
    """A cluster of brokers 1, 2, ... with a raw producer."""

    lib: Any
    handle: int
    cluster: int

    @property
    def bootstrap(self) -> str:
        address: bytes = self.lib.rd_kafka_mock_cluster_bootstraps(self.cluster)
        return address.decode()

    def topic(self, name: str, partitions: int = 1) -> None:
        assert self.lib.rd_kafka_mock_topic_create(self.cluster, name.encode(), partitions, 1) == 0

    def produce(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int = 0,
        ms: int | None = None,
        header: tuple[bytes, bytes] | None = None,
    ) -> None:
        """One record, whatever its header's key and its time are. `flush` sends it."""
        given: list[tuple[int, str, Any]] = [
            (TOPIC, "text", topic.encode()),
            (PARTITION, "i32", partition),
            (FLAGS, "i32", COPY),
            (VALUE, "data", _Bytes(value, len(value))),
        ]
        if ms is not None:
            given.append((TIMESTAMP, "i64", ms))
        if header is not None:
            given.append((HEADER, "header", _Header(header[0], header[1], len(header[1]))))
        arguments = (_Argument * len(given))()
        for argument, (kind, name, what) in zip(arguments, given, strict=True):
            argument.kind = kind
            setattr(argument.value, name, what)
        assert not self.lib.rd_kafka_produceva(self.handle, arguments, len(given))

    def flush(self) -> None:
        assert self.lib.rd_kafka_flush(self.handle, 10_000) == 0

    def new_epoch(self, topic: str, partition: int = 0, leader: int = 1) -> None:
        """Elect the leader anew: what is produced from now on belongs to the next epoch."""
        assert self.lib.rd_kafka_mock_partition_set_leader(self.cluster, topic.encode(), partition, leader) == 0

    def kill(self, broker: int) -> None:
        """Close a broker's port and connections."""
        assert self.lib.rd_kafka_mock_broker_set_down(self.cluster, broker) == 0

    def revive(self, broker: int) -> None:
        assert self.lib.rd_kafka_mock_broker_set_up(self.cluster, broker) == 0

    def slow(self, broker: int, seconds: float) -> None:
        """Have a broker answer so much later; an hour is as good as a frozen one."""
        assert self.lib.rd_kafka_mock_broker_set_rtt(self.cluster, broker, round(seconds * 1000)) == 0

    def fail(self, api: int, *errors: int) -> None:
        """Answer the next requests of this kind (its number in Kafka's protocol) with these errors."""
        self.lib.rd_kafka_mock_push_request_errors_array(
            self.cluster, api, len(errors), (c.c_int * len(errors))(*errors)
        )

    def stop_failing(self, api: int) -> None:
        """Take back what `fail` has asked for and was not hit."""
        self.lib.rd_kafka_mock_clear_request_errors(self.cluster, api)

    def settings(self, root: str = "/nowhere") -> Settings:
        """Settings of a consumer of this cluster."""
        return Settings.model_validate(
            {
                "group": "g",
                "kafka": {"bootstrap_servers": self.bootstrap},
                "lake": {"root": root},
                "topics": [{"pattern": ".*", "table": "{topic}"}],
            }
        )


@contextmanager
def mock_kafka(brokers: int = 1) -> Iterator[MockKafka]:
    """A cluster that is there for as long as the block."""
    lib = _library()
    conf, error = lib.rd_kafka_conf_new(), c.create_string_buffer(ERROR_SIZE)
    for name, value in {"test.mock.num.brokers": str(brokers), "client.id": "raw", "linger.ms": "0"}.items():
        assert lib.rd_kafka_conf_set(conf, name.encode(), value.encode(), error, ERROR_SIZE) == 0, error.value
    handle = lib.rd_kafka_new(PRODUCER, conf, error, ERROR_SIZE)
    assert handle, error.value
    try:
        yield MockKafka(lib, handle, lib.rd_kafka_handle_mock_cluster(handle))
    finally:
        lib.rd_kafka_destroy(handle)
