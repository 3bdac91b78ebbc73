"""The classes that every broker start loads, in one archive that the JVM maps: a start then takes a third less work.

As for Spark (`spark/class_archive.py`): without the archive a broker starts all the same, more slowly.
"""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.embedded_kafka.jars import KAFKA_VERSION
from kgs_core.errors import PermanentError
from kgs_core.spark.java import JavaHome

_FILE = "kafka.jsa"
RunBroker = Callable[[Path, tuple[str, ...]], None]
"""Starts a broker in a directory with these JVM options instead of the archive's, and ends it in order."""


def archive_options(java: JavaHome, jars: Path) -> tuple[str, ...]:
    """JVM options that use the archive; empty while there is none."""
    file = _directory(java, jars) / _FILE
    return (f"-XX:SharedArchiveFile={file}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if file.is_file() else ()


def build_archive(java: JavaHome, jars: Path, run_broker: RunBroker) -> Path:
    """Make the archive if it is not there; some seconds. Raises `PermanentError` if the broker or its JVM fails."""

    def build(directory: Path) -> None:
        with tempfile.TemporaryDirectory() as room:
            run_broker(Path(room), (f"-XX:ArchiveClassesAtExit={directory / _FILE}",))
        if not (directory / _FILE).is_file():
            raise PermanentError(f"Kafka's class archive was not written to {directory}: is its disk full?")

    return build_once(_directory(java, jars), build) / _FILE


def _directory(java: JavaHome, jars: Path) -> Path:
    """Named by all that an archive depends on: the JVM checks them too, and would ignore one that does not fit."""
    made = jars.stat().st_mtime  # jars that were downloaded again are others to the JVM
    what = f"{java.home} {java.version} {(java.home / 'release').stat().st_mtime} {KAFKA_VERSION} {jars} {made}"
    return cache_directory() / f"kafka-classes-{hashlib.sha256(what.encode()).hexdigest()[:16]}"
