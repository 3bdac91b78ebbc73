"""One Spark task that reads batch after batch: a job for each would cost more than a small batch itself.

The driver starts the job in a thread, and the task connects back to it by a socket in the file system, so both are on
one machine (`local[...]`). A request goes in, a result comes out, each a pickle. The socket is the only tie: when
either side ends, in whatever way, the other one reads the end of its stream. The task returns then, and its Python
worker, with Kafka's client in it, is free for the next task.
"""

import gc
import pickle
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from kgs_core.ingest.round.questions import ReadResult
from kgs_core.ingest.worker.arrow_task import ArrowRequest, read_round
from kgs_core.kafka.records import collector_paused

if TYPE_CHECKING:
    from pyspark import RDD

_POLL_S = 0.05
_END_S = 10.0
_COLLECT_S = 1.0


def answer_requests(address: str, rows: Iterator[object]) -> Iterator[ReadResult]:
    """Body of the Spark task: answers what comes by the socket `address` until that ends; yields nothing."""
    collect_at = 0.0
    list(rows)  # Spark throws the worker away, and our client with it, unless its input is read to the end
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        with _stream_of(connection) as stream:
            while (request := _received(stream)) is not None:
                with collector_paused():
                    result = read_round(cast("ArrowRequest", request))
                try:
                    _send(stream, result)
                except ConnectionError:  # a driver that has gone has ended it
                    break
                if time.monotonic() >= collect_at:  # as Spark's daemon does between tasks; the driver commits meanwhile
                    gc.collect()
                    collect_at = time.monotonic() + _COLLECT_S
    yield from ()


class LongTask:
    """The driver's side. Used by one thread at a time.

    `folder`: where the socket is made; empty, and nobody else may enter it.
    """

    def __init__(self, seed: "RDD[Any]", folder: Path) -> None:
        self._address = str(folder / "task")
        self._error: BaseException | None = None
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(1)
            self._thread = threading.Thread(target=self._run, args=[seed], name="spark-task", daemon=True)
            self._thread.start()
            connection = self._accepted(listener)
        with connection:
            self._stream = _stream_of(connection)

    def read(self, request: ArrowRequest) -> ReadResult:
        """One batch.

        Raises:
            Exception: the task has failed, with what it failed with; another one must be made.
        """
        try:
            _send(self._stream, request)
            result = _received(self._stream)
        except OSError:
            result = None
        except BaseException:  # else it would keep the core from the task that comes after it
            self.end()
            raise
        if result is None:
            self.end()
            raise self._reason()
        return cast("ReadResult", result)

    def end(self) -> None:
        """Have the task return, and wait for it: where there is one core, the next job gets it then."""
        with suppress(OSError):
            self._stream.close()
        self._thread.join(_END_S)

    def _run(self, seed: "RDD[Any]") -> None:
        try:
            seed.mapPartitions(partial(answer_requests, self._address)).collect()
        except BaseException as e:  # noqa: BLE001 - handed to the thread that reads
            self._error = e

    def _accepted(self, listener: socket.socket) -> socket.socket:
        listener.settimeout(_POLL_S)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if not self._thread.is_alive():
                    raise self._reason() from None
            else:
                connection.settimeout(None)
                return connection

    def _reason(self) -> BaseException:
        return self._error or RuntimeError("Spark's task has ended, and Spark does not say why")


def _stream_of(connection: socket.socket) -> BinaryIO:
    return cast("BinaryIO", connection.makefile("rwb"))


def _send(stream: BinaryIO, message: object) -> None:
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _received(stream: BinaryIO) -> object | None:
    """The next message; None when the other side has ended, even within a message."""
    try:
        return cast("object", pickle.load(stream))  # noqa: S301 - from our own process, by a folder of our own
    except (EOFError, ConnectionError, pickle.UnpicklingError):
        return None
