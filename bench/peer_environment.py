"""The peer's environment: PySpark of the version that delta-spark is published for, and its jars; made once."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kgs_core
from bench import peer
from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.embedded_kafka.jars import ivy_jar
from kgs_core.errors import PermanentError
from kgs_core.spark.java import JavaHome

VERSIONS = {"pyspark": "4.2.0", "delta-spark": "4.4.0", "spark-sql-kafka": "4.2.0", "kafka-clients": "3.9.1"}
REQUIREMENTS = Path("requirements") / "bench-peer.txt"
_TIMEOUT_S = 1200.0
_LINES_SHOWN = 15

# The connector's own POM asks for a token provider that was never published, so its parts are named one by one. Of
# delta-spark's only what PySpark does not bring in newer versions.
_ALONE = (
    ("org.apache.spark", f"spark-sql-kafka-0-10_2.13:{VERSIONS['spark-sql-kafka']}"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13:4.1.0-preview1"),
    ("org.apache.kafka", f"kafka-clients:{VERSIONS['kafka-clients']}"),
    ("org.apache.commons", "commons-pool2:2.12.1"),
    ("io.delta", f"delta-spark_4.2_2.13:{VERSIONS['delta-spark']}"),
    ("io.delta", f"delta-storage:{VERSIONS['delta-spark']}"),
    ("io.delta", f"delta-kernel-api:{VERSIONS['delta-spark']}"),
    ("io.delta", f"delta-kernel-defaults:{VERSIONS['delta-spark']}"),
    ("io.delta", f"delta-kernel-unitycatalog:{VERSIONS['delta-spark']}"),
    ("io.unitycatalog", "unitycatalog-client:0.6.0"),
    ("io.unitycatalog", "unitycatalog-hadoop:0.6.0"),
)


@dataclass(frozen=True, slots=True)
class PeerEnvironment:
    """Interpreter and jars of the peer."""

    python: Path
    jars: Path

    def command(self) -> list[str]:
        """What runs the peer; the socket's path is still to be added."""
        # -P: the program's own folder must not be searched for modules, ours lie there
        return [str(self.python), "-P", str(peer.__file__), str(self.jars)]


def peer_environment(java: JavaHome, log: Callable[[str], None]) -> PeerEnvironment:
    """The peer's environment; the first call on a machine downloads it.

    Raises:
        PermanentError: it cannot be made, with the end of what pip or Ivy said.
    """

    def build(directory: Path) -> None:
        log("making the peer's environment (PySpark 4.2, Delta; 500 MB, once)")
        _make(directory, java)

    home = build_once(cache_directory() / f"bench-peer-{'-'.join(VERSIONS.values())}", build)
    return PeerEnvironment(home / "venv" / "bin" / "python", home / "jars")


def _make(directory: Path, java: JavaHome) -> None:
    requirements = Path(kgs_core.__file__).parents[1] / REQUIREMENTS
    if not requirements.is_file():
        raise PermanentError(f"bench: {requirements} is not there: run it from a checkout, or with --no-peer")
    venv = directory / "venv"
    _run([sys.executable, "-P", "-m", "venv", "--without-pip", str(venv)])
    pip = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--python", str(venv / "bin" / "python")]
    _run([*pip, "install", "--quiet", "--no-compile", "--require-hashes", "--no-deps", "-r", str(requirements)])
    ivy_file = directory / "ivy.xml"
    ivy_file.write_text(_ivy_file())
    where = ["-ivy", str(ivy_file), "-cache", str(directory / "ivy"), "-types", "jar", "bundle"]
    retrieved = ["-retrieve", str(directory / "jars" / "[artifact]-[revision].[ext]")]
    _run([str(java.java), "-jar", str(ivy_jar()), *where, *retrieved])
    found = list((directory / "jars").glob("*.jar"))
    if len(found) != len(_ALONE):
        raise PermanentError(f"bench: {len(found)} of the peer's {len(_ALONE)} jars found: try again")
    shutil.rmtree(directory / "ivy")  # the jars a second time


def _ivy_file() -> str:
    lines = []
    for organisation, coordinate in _ALONE:
        name, revision = coordinate.split(":")
        lines.append(
            f'    <dependency org="{organisation}" name="{name}" rev="{revision}" conf="default->default" '
            'transitive="false"/>'
        )
    dependencies = "\n".join(lines)
    return f"""<ivy-module version="2.0">
  <info organisation="kgs" module="bench-peer"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as e:
        raise PermanentError(f"bench: peer: {command[0]}: not done in {_TIMEOUT_S:g} s: try again") from e
    if done.returncode:
        output = "\n".join(line for line in done.stdout.splitlines()[-_LINES_SHOWN:] if line.strip())
        raise PermanentError(f"bench: the peer's environment cannot be made: use --no-peer, or try again:\n{output}")
