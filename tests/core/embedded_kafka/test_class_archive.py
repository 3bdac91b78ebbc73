"""The archive of Kafka's classes: used once it is there, made once, and by another Java or another Kafka not at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from kgs_core.embedded_kafka import class_archive
from kgs_core.embedded_kafka.class_archive import archive_options, build_archive
from kgs_core.errors import PermanentError
from kgs_core.spark.java import JavaHome


@pytest.fixture
def java(tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").touch()
    return JavaHome(tmp_path / "java", 17, "PATH")


@pytest.fixture
def jars(tmp_path):
    (tmp_path / "jars").mkdir()
    return tmp_path / "jars"


def written(_directory, options):
    """As a JVM does that ends."""
    (option,) = options
    Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).touch()


def test_a_broker_starts_without_it_and_with_it_once_it_is_made(java, jars):
    assert archive_options(java, jars) == ()
    file = build_archive(java, jars, written)
    assert archive_options(java, jars)[0] == f"-XX:SharedArchiveFile={file}"
    assert build_archive(java, jars, lambda *_: pytest.fail("made again")) == file


def test_another_java_or_another_kafka_has_none(java, jars, monkeypatch):
    build_archive(java, jars, written)
    assert archive_options(replace(java, version=21), jars) == ()
    monkeypatch.setattr(class_archive, "KAFKA_VERSION", "9.9.9")
    assert archive_options(java, jars) == ()


def test_a_jvm_that_writes_none_is_reported_and_the_next_one_tries_again(java, jars):
    with pytest.raises(PermanentError, match="Kafka's class archive was not written"):
        build_archive(java, jars, lambda *_: None)
    assert archive_options(java, jars) == ()
    assert build_archive(java, jars, written).is_file()
