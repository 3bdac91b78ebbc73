"""A Spark Python worker's clients: long-lived, and fetching ahead between batches.

Spark re-uses its Python workers, so a client of the module goes on prefetching. It is a cache and no more: when the
worker dies, the next one starts from the positions that the request names.
"""

import gc
import logging
import time
from collections.abc import Mapping

import pyarrow as pa
from confluent_kafka import KafkaException

from kgs_core.errors import PortError, one_line
from kgs_core.ingest.fetch.session import NativeFetchSession
from kgs_core.system.secret_files import SecretFiles

UNUSED_S = 600.0
Config = Mapping[str, str | int | bool]
_log = logging.getLogger(__name__)
_sessions: dict[str, tuple[object, NativeFetchSession, SecretFiles]] = {}
_used_at: dict[str, float] = {}


def session(name: str, config: Config) -> NativeFetchSession:
    """This worker's client of that name; made anew when the configuration, or a file of its secrets, has changed.

    One that has not been asked for in a while is ended: each has threads and records fetched ahead, and topics come
    and go in the life of a worker.

    Raises:
        PermanentError, KafkaException: as `NativeFetchSession`.
    """
    now = time.monotonic()
    _used_at[name] = now
    for other in [n for n in _sessions if n != name and now - _used_at.get(n, now) > UNUSED_S]:
        _sessions.pop(other)[1].close()
        del _used_at[other]
    key = tuple(sorted((k, str(v)) for k, v in config.items()))
    if name in _sessions and _sessions[name][0] != key:
        _sessions.pop(name)[1].close()
    if name in _sessions and not _sessions[name][2].have_changed():
        return _sessions[name][1]
    files = SecretFiles(config)
    try:
        client = NativeFetchSession(config)
    except (KafkaException, PortError) as e:
        if name not in _sessions:
            raise
        # A key without its certificate, say: they come one by one
        _log.warning("secrets of the client have changed, and do not fit yet: %s", one_line(e))
        return _sessions[name][1]
    if name in _sessions:
        _sessions.pop(name)[1].close()
    _sessions[name] = (key, client, files)
    # pyarrow loads pandas with its first array, which takes a second: not in the first batch, and before what follows.
    pa.array([b""])
    # Spark's daemon has Python collect all garbage after every task. What is loaded by now is none, and left out.
    gc.collect()
    gc.freeze()
    return client


def close_sessions() -> None:
    """End all clients of this process."""
    while _sessions:
        _sessions.popitem()[1][1].close()
