"""The Spark session of a consumer, with the settings that make a small batch cheap."""

import os
import sys
from typing import TYPE_CHECKING

from kgs_core.adapters.java import java_environment
from kgs_core.adapters.spark_archive import archive_options
from kgs_core.config.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 "  # start and small jobs, twice as fast
    "-XX:+UseSerialGC "
    "-XX:+ExitOnOutOfMemoryError"  # a driver whose JVM is out of memory hangs otherwise
)
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",  # TCP stalls about 45 ms a Python task
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # rows reach the writer several times faster than by 10,000
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",  # what a task failed with is in our own log, in one line
}
LOCAL_DEFAULTS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def start_spark(settings: SparkSettings, name: str) -> "SparkSession":
    """A new session on `settings.master`; the user's settings win over ours.

    Raises:
        PermanentError: there is no Java.
    """
    os.environ.update(java_environment())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    defaults = {**DEFAULTS, "spark.driver.extraJavaOptions": JAVA_OPTIONS + archive_options()}
    builder = SparkSession.builder.master(settings.master).appName(name)
    local = LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    for key, value in {**defaults, **local, **settings.settings}.items():
        builder = builder.config(key, str(value).lower() if isinstance(value, bool) else str(value))
    return builder.getOrCreate()


def jvm_has_ended(spark: "SparkSession") -> bool:
    """Whether the session's JVM is gone, so that no further job can succeed."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the only way to its process
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def stop_spark(spark: "SparkSession") -> None:
    """End the session; one whose JVM is gone has ended already, and asking it would hide why."""
    if not jvm_has_ended(spark):
        spark.stop()
