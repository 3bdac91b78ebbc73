"""What Spark's JVM is started with."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark.accumulators import AccumulatorTCPServer, UpdateRequestHandler

from kgs_core.config.settings import SparkSettings
from kgs_core.spark import class_archive, temporary_folder
from kgs_core.spark.class_archive import archive_options
from kgs_core.spark.java import find_java
from kgs_core.spark.session import end_accumulators_in_silence, prepare_spark

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("user", "merged"),
    [
        ("-Xss8m", "-XX:+ExitOnOutOfMemoryError -Xss8m"),
        ("-XX:+UseG1GC -XX:-ExitOnOutOfMemoryError", "-XX:+UseG1GC -XX:-ExitOnOutOfMemoryError"),
    ],
    ids=["others", "that one is theirs"],
)
def test_options_of_the_user_keep_the_end_of_a_jvm_without_memory(monkeypatch, user, merged):
    """Without it a driver whose JVM has no memory left hangs."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(temporary_folder, "spark_folder", lambda: None)
    assert prepare_spark(SparkSettings(settings={OPTIONS: user}), "test")[OPTIONS] == merged


@pytest.mark.parametrize(
    ("folder", "users", "is_used"),
    [
        ("/tmp/a b", None, True),
        ("/tmp/a", "-Xss8m", True),
        ("/tmp/a", "-Djava.io.tmpdir=/theirs", False),
        ("/tmp/" + "a" * 60, None, False),
        (None, None, False),
    ],
    ids=["a blank in it", "options of the user", "the user's own", "too long for the address of a socket", "none"],
)
def test_the_jvms_temporary_files_lie_where_the_next_start_removes_those_of_a_killed_one(
    monkeypatch, folder, users, is_used
):
    """Each killed consumer left a library and some sockets and folders in /tmp for ever."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(temporary_folder, "spark_folder", lambda: folder and Path(folder))
    options = prepare_spark(SparkSettings(settings={OPTIONS: users} if users else {}), "test")[OPTIONS]
    assert options.endswith(f' "-Djava.io.tmpdir={folder}"') == is_used
    assert options.count("java.io.tmpdir") == (is_used or "tmpdir" in (users or ""))
    assert "-XX:+ExitOnOutOfMemoryError" in options


def test_end_of_the_jvms_connection_for_accumulators_prints_nothing(capfd):
    """Each end of a consumer with a dataframe topic printed a traceback of EOFError."""
    with AccumulatorTCPServer(("127.0.0.1", 0), UpdateRequestHandler, "token") as server:
        end_accumulators_in_silence(SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server)))
        with socket.create_connection(server.server_address) as jvm:
            jvm.sendall(b"token" + (0).to_bytes(4, "big"))
            jvm.shutdown(socket.SHUT_WR)
            server.handle_request()
    assert "EOFError" not in capfd.readouterr().err


def test_archive_in_a_folder_with_blanks_and_quotes_is_one_option(tmp_path, monkeypatch):
    """Asked of Spark's own launcher, which makes the JVM's command line. Every start failed after `kgs prepare`."""
    folder = tmp_path / 'my "cache" \\ folder'
    folder.mkdir()
    (folder / "spark.jsa").touch()
    monkeypatch.setattr(class_archive, "_directory", lambda: folder)
    java = find_java().home / "bin" / "java"
    jars = Path(pyspark.__file__).parent / "jars"
    launcher = [str(java), "-cp", f"{jars}/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    options = ["--conf", f"{OPTIONS}=-Xss8m{archive_options()}", "pyspark-shell"]
    environ = {**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}
    said = subprocess.run([*launcher, *options], capture_output=True, env=environ, check=True, timeout=120).stdout
    command = said.decode().replace("\n", "\0").split("\0")
    assert f"-XX:SharedArchiveFile={folder / 'spark.jsa'}" in command


def test_workers_keep_memory_unless_the_user_says_otherwise(monkeypatch):
    """The C library passes over what it cannot read, so the names are held against pyarrow's own view."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    pool = "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"
    ours = prepare_spark(SparkSettings(), "test")
    own = {name.removeprefix("spark.executorEnv."): value for name, value in ours.items() if ".executorEnv." in name}
    code = "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    said = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True, check=True, timeout=60).stdout
    assert said.strip() == b"system"
    assert pool not in prepare_spark(SparkSettings(settings={pool: "mimalloc"}), "test")
