"""Reading the file itself: whatever lies under the name, the answer is one line with the file and the reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgs_core.config.file import load_settings
from kgs_core.config.settings import config_hash
from kgs_core.config.yaml_tree import MAX_BYTES
from kgs_core.errors import ConfigError


def refusal(path):
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})
    (problem,) = caught.value.problems
    return problem.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (lambda path: path, "no such file: `kgs init` makes one, or name another file"),
        (Path.touch, "empty: start from what `kgs example` prints"),
        (Path.mkdir, "is a directory: fix the file or name another"),
        (os.mkfifo, "not a file: name the configuration file itself"),
        (lambda path: path.symlink_to("/dev/zero"), "not a file: name the configuration file itself"),
        (lambda path: path.symlink_to(path.name), "too many levels of symbolic links: fix the file or name another"),
    ],
    ids=["absent", "empty", "a directory", "a pipe that nobody writes to", "an endless device", "a link to itself"],
)
def test_what_is_no_file_with_a_configuration_is_named_and_hangs_nobody(tmp_path, make, answer):
    make(tmp_path / "k.yaml")
    assert refusal(tmp_path / "k.yaml") == answer


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_the_right_to_read(tmp_path):
    (tmp_path / "k.yaml").touch(mode=0)
    assert refusal(tmp_path / "k.yaml") == "permission denied: fix the file or name another"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
def test_a_file_that_fails_while_it_is_read():
    assert refusal(Path("/proc/self/mem")) == "input/output error: fix the file or name another"


def test_a_name_that_cannot_be():
    assert refusal(Path("a\0b")) == "'a\\x00b': not the name of a file: name another"


def test_a_huge_file_is_not_read_whole(tmp_path):
    path = tmp_path / "k.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room on disk, and would take all of our memory
    assert refusal(path) == f"larger than {MAX_BYTES} bytes: a configuration is not"


@pytest.mark.parametrize(
    ("root", "kept"),
    [
        ("lake", "{folder}/lake"),
        ("./lake/", "{folder}/lake"),
        (".", "{folder}"),
        ("/abs/lake", "/abs/lake"),
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("abfss://files@acc.dfs.core.windows.net/lake/", "abfss://files@acc.dfs.core.windows.net/lake"),
    ],
)
def test_a_relative_root_lies_beside_the_file(tmp_path, with_sections, monkeypatch, root, kept):
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "k.yaml").write_text(with_sections(lake=f"lake: {{root: {root}}}"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for path in (folder / "k.yaml", Path("../conf/k.yaml")):
        assert load_settings(path, {}).lake.root == kept.format(folder=folder)


@pytest.mark.parametrize(
    "root",
    [
        "../lake", "lake/../..", "~/lake", '"a\\0b"', "''", "file:///lake", "http://h/x", "s3a://b/x", "s3://", "s3:///x",
        "S3://b/x", "s3://b/../x", "'s3://b/x?y'",
    ],
)  # fmt: skip
def test_roots_that_are_refused(problems_of, root):
    (found,) = problems_of(lake=f"lake: {{root: {root}}}")
    assert found.startswith("lake.root: ")


def test_settings_are_read_without_the_libraries_of_what_they_name():
    """Algorithms and formats are known by their names; what runs them is loaded where it runs."""
    program = (
        "import kgs_core.config.file, sys; print({'numba', 'numpy', 'pandas', 'pyarrow', 'pyspark'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


AVRO = """
group: g
kafka: {bootstrap_servers: "localhost:9092"}
lake: {root: lake}
topics: [{topic: t, format: avro, avro_schema: %s}]
"""


def test_avro_schema_in_a_file_is_part_of_the_settings(tmp_path):
    (tmp_path / "k.yaml").write_text(AVRO % "t.avsc")
    problem = refusal(tmp_path / "k.yaml")
    assert problem.startswith(str(tmp_path / "t.avsc"))
    assert "no such file" in problem
    (tmp_path / "t.avsc").write_bytes(b"\xff")
    assert refusal(tmp_path / "k.yaml") == "topics[0].avro_schema: t.avsc is not UTF-8: name an Avro schema as JSON"
    (tmp_path / "t.avsc").write_text('{"type": "record"}')
    one = load_settings(tmp_path / "k.yaml", {})
    assert one.topics[0].avro_schema == '{"type": "record"}'
    (tmp_path / "t.avsc").write_text("{}")
    assert config_hash(load_settings(tmp_path / "k.yaml", {})) != config_hash(one)
    (tmp_path / "k.yaml").write_text(AVRO % "'{}'")
    assert load_settings(tmp_path / "k.yaml", {}).topics[0].avro_schema == "{}"


def test_avro_needs_a_registry_or_a_schema(tmp_path):
    (tmp_path / "k.yaml").write_text(AVRO % "null")
    assert refusal(tmp_path / "k.yaml").endswith("needs a registry: give registry.url, or the rule an 'avro_schema'")
    (tmp_path / "k.yaml").write_text((AVRO % "'{}'").replace("format: avro", "format: raw"))
    assert refusal(tmp_path / "k.yaml").endswith("'avro_schema' is for format avro alone")
