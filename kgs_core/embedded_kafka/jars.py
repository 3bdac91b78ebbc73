"""The jars of a Kafka broker: resolved once into the cache directory by the Ivy that comes with PySpark."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.errors import PermanentError
from kgs_core.spark.java import JavaHome

KAFKA_VERSION = os.environ.get("KGS_KAFKA_VERSION") or "4.4.0"
_RESOLVE_TIMEOUT_S = 900.0
_LINES_SHOWN = 15

_JARS = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", "org.apache.logging.log4j:log4j-slf4j2-impl:2.25.4")

# kafka-tools-api is named in the broker's POM and was never published.
_IVY_FILE = """<ivy-module version="2.0">
  <info organisation="kgs" module="jars"/>
  <dependencies>
    {}
    <exclude org="org.apache.kafka" module="kafka-tools-api"/>
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default->default"/>'


def kafka_jars(java: JavaHome, log: Callable[[str], None]) -> Path:
    """The directory of the broker's jars; the first call on a machine downloads them.

    Raises:
        PermanentError: the download failed (with the end of what Ivy said), or there is no PySpark to take Ivy from.
    """

    def build(directory: Path) -> None:
        log(f"downloading Kafka {KAFKA_VERSION} (43 MB, once)")
        resolve_jars(java, directory, f"Kafka {KAFKA_VERSION}", _JARS)

    return build_once(cache_directory() / f"kafka-{KAFKA_VERSION}", build) / "jars"


def resolve_jars(java: JavaHome, directory: Path, name: str, wanted: Sequence[str]) -> None:
    """Fills `directory / "jars"` with these jars (`organisation:module:version`) and all that they need.

    Raises:
        PermanentError: the download failed, with the end of what Ivy said.
    """
    ivy_file = directory / "ivy.xml"
    ivy_file.write_text(_IVY_FILE.format("\n    ".join(_DEPENDENCY.format(*each.split(":")) for each in wanted)))
    command = [str(java.java), "-jar", str(ivy_jar()), "-ivy", str(ivy_file), "-cache", str(directory / "ivy")]
    command += ["-types", "jar", "bundle", "-retrieve", str(directory / "jars" / "[artifact]-[revision].[ext]")]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_RESOLVE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise PermanentError(f"{name}: not downloaded in {_RESOLVE_TIMEOUT_S:.0f} s: try again") from error
    _, module, version = wanted[0].split(":")
    if done.returncode or not (directory / "jars" / f"{module}-{version}.jar").is_file():
        output = "\n".join(line for line in done.stdout.splitlines()[-_LINES_SHOWN:] if line.strip())
        raise PermanentError(f"{name}: cannot be downloaded: check the network and try again:\n{output}")
    shutil.rmtree(directory / "ivy")  # the jars a second time


def ivy_jar() -> Path:
    """Ivy as PySpark brings it along, run by `java -jar`.

    Raises:
        PermanentError: there is no PySpark.
    """
    spec = find_spec("pyspark")  # not imported: that costs a second
    for place in (spec.submodule_search_locations if spec else None) or ():
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise PermanentError("Kafka: no Ivy jar found in PySpark: `pip install pyspark`")
