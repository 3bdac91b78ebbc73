"""The jars of a Kafka broker: resolved once into the cache directory by the Ivy that comes with PySpark."""

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.errors import PermanentError
from kgs_core.spark.java import JavaHome

KAFKA_VERSION = os.environ.get("KGS_KAFKA_VERSION") or "4.4.0"
_RESOLVE_TIMEOUT_S = 900.0
_LINES_SHOWN = 15

# kafka-tools-api is named in the broker's POM and was never published.
_IVY_FILE = f"""<ivy-module version="2.0">
  <info organisation="kgs" module="embedded-kafka"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{KAFKA_VERSION}" conf="default->default"/>
    <dependency org="org.apache.logging.log4j" name="log4j-slf4j2-impl" rev="2.25.4" conf="default->default"/>
    <exclude org="org.apache.kafka" module="kafka-tools-api"/>
  </dependencies>
</ivy-module>
"""


def kafka_jars(java: JavaHome, log: Callable[[str], None]) -> Path:
    """The directory of the broker's jars; the first call on a machine downloads them.

    Raises:
        PermanentError: the download failed (with the end of what Ivy said), or there is no PySpark to take Ivy from.
    """

    def build(directory: Path) -> None:
        log(f"downloading Kafka {KAFKA_VERSION} (43 MB, once)")
        _resolve(java, directory)

    return build_once(cache_directory() / f"kafka-{KAFKA_VERSION}", build) / "jars"


def _resolve(java: JavaHome, directory: Path) -> None:
    ivy_file = directory / "ivy.xml"
    ivy_file.write_text(_IVY_FILE)
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
        raise PermanentError(
            f"Kafka {KAFKA_VERSION}: not downloaded in {_RESOLVE_TIMEOUT_S:.0f} s: try again"
        ) from error
    if done.returncode or not (directory / "jars" / f"kafka_2.13-{KAFKA_VERSION}.jar").is_file():
        output = "\n".join(line for line in done.stdout.splitlines()[-_LINES_SHOWN:] if line.strip())
        raise PermanentError(f"Kafka {KAFKA_VERSION}: cannot be downloaded: check the network and try again:\n{output}")
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
