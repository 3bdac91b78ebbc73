"""librdkafka's own interface, on the library that confluent_kafka's wheel brings: public functions and structures only.

Python's `Consumer` does not give its handle away, and its batches are Python objects. So a client of our own is made
here, with the same configuration and by the same functions that `Consumer` calls (docs/adr/0012).
"""

import ctypes as c
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from confluent_kafka import KafkaError, KafkaException, cimpl, libversion
from confluent_kafka import TopicPartition as KafkaPosition

from kgs_core.accel.layout import CALLS, DESTROY, HEADER_GET_ALL, LEADER_EPOCH, MESSAGE_HEADERS, TIMESTAMP, TOPIC
from kgs_core.errors import PermanentError
from kgs_core.ingest.fetch import token_refresh
from kgs_core.ingest.fetch.received import SIGNATURES, STATISTICS, ReceivedBytes
from kgs_core.kafka.clients import plain_settings, token_source

MAJOR = 2
"""Of librdkafka's version: a new one may change its binary interface."""
_CONSUMER = 1
_SET = 0
_ERROR_SIZE = 512
_SEEK_MS = 1000
_POINTER, _TEXT, _INT, _SIZE = c.c_void_p, c.c_char_p, c.c_int, c.c_size_t
_SIGNATURES: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "rd_kafka_version": (_INT, []),
    "rd_kafka_last_error": (_INT, []),
    "rd_kafka_conf_new": (_POINTER, []),
    "rd_kafka_conf_set": (_INT, [_POINTER, _TEXT, _TEXT, _TEXT, _SIZE]),
    "rd_kafka_conf_destroy": (None, [_POINTER]),
    "rd_kafka_new": (_POINTER, [_INT, _POINTER, _TEXT, _SIZE]),
    "rd_kafka_destroy": (None, [_POINTER]),
    "rd_kafka_poll_set_consumer": (_INT, [_POINTER]),
    "rd_kafka_queue_get_consumer": (_POINTER, [_POINTER]),
    "rd_kafka_queue_destroy": (None, [_POINTER]),
    "rd_kafka_consumer_close": (_INT, [_POINTER]),
    "rd_kafka_consume_batch_queue": (c.c_ssize_t, [_POINTER, _INT, _POINTER, _SIZE]),
    "rd_kafka_assign": (_INT, [_POINTER, _POINTER]),
    "rd_kafka_incremental_assign": (_POINTER, [_POINTER, _POINTER]),
    "rd_kafka_incremental_unassign": (_POINTER, [_POINTER, _POINTER]),
    "rd_kafka_seek_partitions": (_POINTER, [_POINTER, _POINTER, _INT]),
    "rd_kafka_error_code": (_INT, [_POINTER]),
    "rd_kafka_error_destroy": (None, [_POINTER]),
    "rd_kafka_topic_partition_list_new": (_POINTER, [_INT]),
    "rd_kafka_topic_partition_list_add": (_POINTER, [_POINTER, _TEXT, c.c_int32]),
    "rd_kafka_topic_partition_list_destroy": (None, [_POINTER]),
    "rd_kafka_topic_partition_set_leader_epoch": (None, [_POINTER, c.c_int32]),
    "rd_kafka_topic_new": (_POINTER, [_POINTER, _TEXT, _POINTER]),
    "rd_kafka_topic_destroy": (None, [_POINTER]),
    "rd_kafka_topic_name": (_TEXT, [_POINTER]),
    "rd_kafka_metadata": (_INT, [_POINTER, _INT, _POINTER, c.POINTER(_POINTER), _INT]),
    "rd_kafka_metadata_destroy": (None, [_POINTER]),
    "rd_kafka_message_errstr": (_TEXT, [_POINTER]),
    "rd_kafka_message_timestamp": (c.c_int64, [_POINTER, _POINTER]),
    "rd_kafka_message_leader_epoch": (c.c_int32, [_POINTER]),
    "rd_kafka_message_headers": (_INT, [_POINTER, _POINTER]),
    "rd_kafka_header_get_all": (_INT, [_POINTER, _SIZE, _POINTER, _POINTER, _POINTER]),
    "rd_kafka_message_destroy": (None, [_POINTER]),
}
_CALLED_BY_LOOPS = {
    TIMESTAMP: "rd_kafka_message_timestamp",
    LEADER_EPOCH: "rd_kafka_message_leader_epoch",
    MESSAGE_HEADERS: "rd_kafka_message_headers",
    HEADER_GET_ALL: "rd_kafka_header_get_all",
    DESTROY: "rd_kafka_message_destroy",
}


class UnfitLibraryError(PermanentError):
    """This librdkafka, or this machine, is not one that the loops were made for."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: records cannot be fetched: install the wheel of confluent-kafka that kgs asks for")


class _ListedPosition(c.Structure):
    """rd_kafka_topic_partition_t."""

    _fields_ = (
        ("topic", c.c_char_p),
        ("partition", c.c_int32),
        ("offset", c.c_int64),
        ("metadata", c.c_void_p),
        ("metadata_size", c.c_size_t),
        ("opaque", c.c_void_p),
        ("error", c.c_int),
        ("private", c.c_void_p),
    )


@cache
def library() -> Any:
    """Librdkafka with the functions that are used here.

    Raises:
        UnfitLibraryError: it is of another major version or lacks a function, or the machine is not of 64 bits.
    """
    lib = c.CDLL(cimpl.__file__)  # its symbols are found by way of the module that is linked to it
    for name, (result, arguments) in {**_SIGNATURES, **token_refresh.SIGNATURES, **SIGNATURES}.items():
        try:
            function = getattr(lib, name)
        except AttributeError as e:
            raise UnfitLibraryError(f"librdkafka {libversion()[0]} has no {name}") from e
        function.restype, function.argtypes = result, arguments
    check_fit(lib.rd_kafka_version(), libversion()[1])
    return lib


def check_fit(found: int, expected: int, *, bits: int = 8 * c.sizeof(c.c_void_p), order: str = sys.byteorder) -> None:
    """Whether the loops' places in a message hold here.

    Args:
        found: version of the library whose functions were found, 0xMMmmrrpp.
        expected: version that Python's client says it uses.

    Raises:
        UnfitLibraryError: they may not.
    """
    if found != expected:
        raise UnfitLibraryError(f"librdkafka {found:#010x} was found, Python's client uses {expected:#010x}")
    if found >> 24 != MAJOR:
        raise UnfitLibraryError(f"librdkafka {found:#010x}: the major version is not {MAJOR}")
    if bits != 64 or order != "little":  # noqa: PLR2004 - so are the messages' places
        raise UnfitLibraryError(f"a machine of {bits} bits, {order}-endian")


class NativeClient:
    """A consuming client with its queue. Not for several threads.

    Attributes:
        received: bytes from each broker; None where its settings ask for no statistics.

    Raises:
        KafkaException: a setting is refused.
        PermanentError: a file of its secrets cannot be read.
        UnfitLibraryError: as `library`.
    """

    def __init__(self, config: Mapping[str, str | int | bool]) -> None:
        self._lib = lib = library()
        error = c.create_string_buffer(_ERROR_SIZE)
        settings, source = plain_settings(config), token_source(config)
        conf = lib.rd_kafka_conf_new()
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if lib.rd_kafka_conf_set(conf, name.encode(), text.encode(), error, _ERROR_SIZE) != _SET:
                lib.rd_kafka_conf_destroy(conf)
                raise KafkaException(_error(KafkaError._INVALID_ARG, error.value))  # noqa: SLF001 - a public constant
        if source is not None:
            self._refresh = token_refresh.prepare(lib, conf, source)
        self.received = ReceivedBytes(lib, conf) if STATISTICS in settings else None
        handle = lib.rd_kafka_new(_CONSUMER, conf, error, _ERROR_SIZE)
        if not handle:
            lib.rd_kafka_conf_destroy(conf)
            raise KafkaException(_error(KafkaError._INVALID_ARG, error.value))  # noqa: SLF001 - a public constant
        if source is not None:
            token_refresh.begin(lib, handle)
        lib.rd_kafka_poll_set_consumer(handle)
        self._handle: int | None = handle
        self._queue = lib.rd_kafka_queue_get_consumer(handle)
        self._topics: dict[str, int] = {}

    def close(self) -> None:
        """End the client. Its messages must have been freed; once closed, nothing happens."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        self.forget_topics()
        self._lib.rd_kafka_consumer_close(handle)
        self._lib.rd_kafka_queue_destroy(self._queue)
        self._lib.rd_kafka_destroy(handle)

    def assign(self, partitions: Sequence[KafkaPosition], /) -> None:
        """Read these partitions, each from its offset, and no others.

        Raises:
            KafkaException: refused.
        """
        listed = self._listed(partitions)
        code = self._lib.rd_kafka_assign(self._handle, listed)
        self._lib.rd_kafka_topic_partition_list_destroy(listed)
        _check(code)

    def incremental_assign(self, partitions: Sequence[KafkaPosition], /) -> None:
        """Read these partitions, too, each from its offset.

        Raises:
            KafkaException: refused; one is assigned already, for example.
        """
        self._change(self._lib.rd_kafka_incremental_assign, partitions)

    def incremental_unassign(self, partitions: Sequence[KafkaPosition], /) -> None:
        """Read these partitions no longer; what was fetched ahead of them is dropped.

        Raises:
            KafkaException: refused; one is not assigned, for example.
        """
        self._change(self._lib.rd_kafka_incremental_unassign, partitions)

    def _change(self, function: Any, partitions: Sequence[KafkaPosition]) -> None:
        listed = self._listed(partitions)
        error = function(self._handle, listed)
        self._lib.rd_kafka_topic_partition_list_destroy(listed)
        _check(_destroy_error(error))

    def seek(self, partition: KafkaPosition, /) -> None:
        """Go on elsewhere in an assigned partition, with the check of its leader epoch.

        Raises:
            KafkaException: the assignment has not come through yet.
        """
        listed = self._listed([partition])
        error = self._lib.rd_kafka_seek_partitions(self._handle, listed, _SEEK_MS)
        code = _destroy_error(error)
        # rd_kafka_topic_partition_list_t: count and room, then the positions.
        position = c.cast(
            c.c_void_p.from_address(listed + 2 * c.sizeof(c.c_int)).value or 0, c.POINTER(_ListedPosition)
        )
        code = code or position.contents.error
        self._lib.rd_kafka_topic_partition_list_destroy(listed)
        _check(code)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> None:
        """Ask the brokers where the partitions of a topic, or of all, are.

        Raises:
            KafkaException: no answer.
        """
        one = None if topic is None else self._lib.rd_kafka_topic_new(self._handle, topic.encode(), None)
        found = c.c_void_p()
        code = self._lib.rd_kafka_metadata(self._handle, topic is None, one, c.byref(found), int(timeout * 1000))
        if code == 0:
            self._lib.rd_kafka_metadata_destroy(found)
        if one is not None:
            self._lib.rd_kafka_topic_destroy(one)
        _check(code)

    def topic_address(self, name: str) -> int:
        """What the messages of a topic name it by, until `forget_topics`."""
        if name not in self._topics:
            self._topics[name] = self._lib.rd_kafka_topic_new(self._handle, name.encode(), None)
        return self._topics[name]

    def forget_topics(self) -> None:
        """Let go of the topics' addresses."""
        while self._topics:
            self._lib.rd_kafka_topic_destroy(self._topics.popitem()[1])

    def consume(self, count: int, timeout_s: float, into: int) -> int:
        """Number of messages that came, at most `count`, waiting until there are as many or the time is up.

        `into`: address with room for `count` addresses of messages, each to be freed.

        Raises:
            KafkaException: librdkafka refuses.
        """
        found: int = self._lib.rd_kafka_consume_batch_queue(self._queue, int(timeout_s * 1000), into, count)
        if found < 0:
            _check(self._lib.rd_kafka_last_error())
        return max(found, 0)

    def _listed(self, partitions: Sequence[KafkaPosition]) -> int:
        listed: int = self._lib.rd_kafka_topic_partition_list_new(len(partitions))
        for each in partitions:
            added = self._lib.rd_kafka_topic_partition_list_add(listed, each.topic.encode(), each.partition)
            _ListedPosition.from_address(added).offset = each.offset
            if each.leader_epoch is not None:
                self._lib.rd_kafka_topic_partition_set_leader_epoch(added, each.leader_epoch)
        return listed


def message_error(message: int, code: int) -> KafkaError:
    """The error that a message (by its address) stands for."""
    return _error(code, library().rd_kafka_message_errstr(message))


def message_topic(message: int) -> str:
    """Name of the topic that a message (by its address) is of; empty where it is of none."""
    topic = c.c_void_p.from_address(message + TOPIC).value
    return library().rd_kafka_topic_name(topic).decode() if topic else ""


def calls() -> Any:
    """The functions that the loops call, as `layout` places them."""
    lib = library()
    table = (c.c_int64 * CALLS)()
    for place, name in _CALLED_BY_LOOPS.items():
        table[place] = c.cast(getattr(lib, name), c.c_void_p).value or 0
    return table


def _destroy_error(error: int | None) -> int:
    """The code of an error that is the caller's to destroy; 0: there is none."""
    if not error:
        return 0
    code: int = library().rd_kafka_error_code(error)
    library().rd_kafka_error_destroy(error)
    return code


def _error(code: int, words: bytes | None) -> KafkaError:
    return KafkaError(code, words.decode(errors="replace") if words else None)


def _check(code: int) -> None:
    if code:
        raise KafkaException(KafkaError(code))
