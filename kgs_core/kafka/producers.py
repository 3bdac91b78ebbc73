"""Producers of the group's topics, and what a failed write is raised as."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from kgs_core.errors import PermanentError, PortError, TransientError
from kgs_core.kafka.clients import python_settings
from kgs_core.kafka.errors import is_passing, port_error

# A client writes fatal errors to stderr whatever its log level is, and we raise them
_SILENT = logging.Logger("confluent-kafka", logging.CRITICAL + 1)
_FINAL = frozenset({"_AUTHENTICATION", "_SSL", "MSG_SIZE_TOO_LARGE", "POLICY_VIOLATION", "RECORD_LIST_TOO_LARGE"})


def make_producer(where: str, config: Mapping[str, Any]) -> Producer:
    """A client; a TransientError where there is no token now."""
    try:
        return Producer({**python_settings(config), "logger": _SILENT})
    except KafkaException as e:
        raise port_error(where, "client settings", e.args[0]) from e


def write_error(where: str, what: str, error: KafkaError, cause: KafkaError | None = None) -> PortError:
    """As `port_error`, but what is only wrong with the client's own state passes: the next client is a new one.

    A producer's id expires, is fenced by a time-out, or is lost with the log that it was in.
    """
    name = error.name()
    words = str(port_error(where, what, error, cause))
    if (name in _FINAL and not is_passing(error)) or name.endswith("AUTHORIZATION_FAILED"):
        return PermanentError(f"{words}: raise the topic's max.message.bytes" if "TOO_LARGE" in name else words)
    return TransientError(words)


def serve(call: Callable[[float], object], timeout_s: float) -> None:
    """Let the client call back, by its `poll` or `flush`.

    Raises:
        KafkaException: a fatal error. The client raises it inside its own callback and may then call one of ours with
            the exception pending, which Python reports as a SystemError.
    """
    try:
        call(timeout_s)
    except SystemError as e:
        if isinstance(e.__cause__, KafkaException):
            raise e.__cause__ from None
        raise
