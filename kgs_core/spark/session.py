"""The Spark session of a consumer, with the settings that make a small batch cheap."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kgs_core.config.settings import SparkSettings
from kgs_core.spark.class_archive import archive_options, java_option
from kgs_core.spark.java import java_environment
from kgs_core.spark.properties import hand_over
from kgs_core.spark.temporary_folder import socket_folder, spark_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 "  # start and small jobs, twice as fast
    "-XX:+UseSerialGC "
    "-XX:+ExitOnOutOfMemoryError"  # a driver whose JVM is out of memory hangs otherwise
)
_log = logging.getLogger(__name__)
_OPTIONS = "spark.driver.extraJavaOptions"
_EXIT = "ExitOnOutOfMemoryError"
_TEMPORARY = "-Djava.io.tmpdir"
_WORKERS_MEMORY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**27),
    "MALLOC_TOP_PAD_": str(2**24),
    "MALLOC_ARENA_MAX": "2",  # each keeps what its threads gave back
}
"""Of the C library. A batch's memory is kept for the next one: to give it back and have it anew, page by page, took a
quarter of a batch's processor time."""
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",  # TCP stalls about 45 ms a Python task
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # rows reach the writer several times faster than by 10,000
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.PYTHONSAFEPATH": "1",  # Python workers are started by -m: the working directory would come first
    **{f"spark.executorEnv.{name}": value for name, value in _WORKERS_MEMORY.items()},
    "spark.log.level": "FATAL",  # what a task failed with is in our own log, in one line
}
LOCAL_DEFAULTS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def start_spark(settings: SparkSettings, name: str) -> "SparkSession":
    """A new session on `settings.master`; the user's settings win over ours.

    Raises:
        PermanentError: there is no Java.
    """
    config = prepare_spark(settings, name)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def prepare_spark(settings: SparkSettings, name: str) -> dict[str, str]:
    """Set up this process's environment for a session, and say what to configure it with.

    The user's own settings are not among it: what is given to a session's builder becomes arguments of its JVM.

    Raises:
        PermanentError: there is no Java.
    """
    os.environ.update(java_environment())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    own = {"spark.master": settings.master, "spark.app.name": name}
    is_local = settings.master.startswith("local")
    folder = spark_folder() if is_local and "SPARK_LOCAL_DIRS" not in os.environ else None
    local = (LOCAL_DEFAULTS if is_local else {}) | ({"spark.local.dir": str(folder)} if folder is not None else {})
    users = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in settings.settings.items()}
    # The JVM shows these as arguments, however they come to it
    options = _with_exit(users.pop(_OPTIONS)) if _OPTIONS in users else JAVA_OPTIONS + archive_options()
    if is_local:
        options = _with_temporary_folder(options)
    defaults = {**DEFAULTS, _OPTIONS: options}
    hand_over(users)
    return {key: value for key, value in {**own, **defaults, **local}.items() if key not in users}


def _with_temporary_folder(options: str) -> str:
    """The options, and where the JVM puts libraries that it unpacks, sockets and what Spark keeps no other place for.

    It removes them when it ends in order.
    """
    folder = socket_folder()
    if _TEMPORARY in options or folder is None:
        return options
    return f"{options} {java_option(f'{_TEMPORARY}={folder}')}"


def _with_exit(options: str) -> str:
    """The user's options take the place of ours, a collector among them; but for the one that kgs relies on."""
    return options if _EXIT in options else f"-XX:+{_EXIT} {options}".strip()


@contextmanager
def interrupt_handler_kept() -> Iterator[None]:
    """Spark's start puts a handler of SIGINT in place of ours, which throws out of the middle of a batch; undo that."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def end_accumulators_in_silence(spark: "SparkSession") -> None:
    """Have the end of the JVM's connection for accumulators, at any end of the session, print no traceback."""
    server: Any = spark.sparkContext._accumulatorServer  # noqa: SLF001 - nothing public leads there
    server.handle_error = _connection_failed


def _connection_failed(_request: object, _address: object) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, EOFError | ConnectionError):
        _log.error("a task's accumulators were not received", exc_info=error)


def jvm_has_ended(spark: "SparkSession") -> bool:
    """Whether the session's JVM is gone, so that no further job can succeed."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the only way to its process
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def stop_spark(spark: "SparkSession") -> None:
    """End the session; one whose JVM is gone has ended already, and asking it would hide why."""
    if not jvm_has_ended(spark):
        spark.stop()
