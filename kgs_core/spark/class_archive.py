"""The classes that every Spark start loads, in one archive that the JVM maps: a start then takes about half the time.

The archive (Java's class data sharing) holds for one Java and one Spark in one place, and its name says which. Without
it Spark starts all the same, more slowly.
"""

import hashlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.errors import PermanentError
from kgs_core.spark.java import find_java, java_environment

BUILD_TIMEOUT_S = 300.0
_FILE = "spark.jsa"
# A session like a consumer's, with each kind of job that one runs; the JVM writes the archive as it ends.
_PROGRAM = """
import sys
from kgs_core.spark.session import start_spark
from kgs_core.config.settings import SparkSettings
settings = {"spark.driver.extraJavaOptions": sys.argv[1]}
spark = start_spark(SparkSettings(settings=settings), "kgs-prepare")
spark.sparkContext.parallelize([0], 1).mapPartitions(list).collect()
spark.range(1).mapInArrow(lambda batches: batches, "id long").coalesce(1).collect()
jvm = spark.sparkContext._gateway.proc
spark.stop()
jvm.stdin.close()
jvm.wait(120)
"""


def archive_options() -> str:
    """JVM options that use the archive; empty while there is none."""
    file = _directory() / _FILE
    if not file.is_file():
        return ""
    return f" {java_option(f'-XX:SharedArchiveFile={file}')} -Xlog:cds=off -Xlog:cds+dynamic=off"


def java_option(option: str) -> str:
    """One option as Spark takes it out of a line of them: blanks and quotes in a path do not end it."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def build_archive(java_options: str) -> Path:
    """Make the archive if it is not there; about half a minute.

    Raises:
        PermanentError: Spark did not start, or its JVM wrote none.
    """

    def build(directory: Path) -> None:
        options = f"{java_options} {java_option(f'-XX:ArchiveClassesAtExit={directory / _FILE}')}"
        command = [sys.executable, "-P", "-c", _PROGRAM, options]
        environ = {**os.environ, **java_environment()}
        done = subprocess.run(
            command, capture_output=True, text=True, env=environ, timeout=BUILD_TIMEOUT_S, check=False
        )
        if done.returncode != 0 or not (directory / _FILE).is_file():
            raise PermanentError(f"Spark's class archive was not written: {(done.stderr or done.stdout)[-500:]}")

    return build_once(_directory(), build) / _FILE


def _directory() -> Path:
    """Named by all that an archive depends on: the JVM checks them too, and would ignore one that does not fit."""
    java = find_java()
    spark = importlib.metadata.distribution("pyspark")
    what = (
        f"{java.home} {java.version} {(java.home / 'release').stat().st_mtime} {spark.version} {spark.locate_file('')}"
    )
    return cache_directory() / f"spark-classes-{hashlib.sha256(what.encode()).hexdigest()[:16]}"
