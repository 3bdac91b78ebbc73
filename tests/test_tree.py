"""The tree as a whole: what no single file can promise."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("kgs_core", "kgs_dagster", "tests") for path in (ROOT / folder).rglob("*.py"))
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
MAX_LINES = 320


def pins(path):
    """name==version of every requirement, once per marker."""
    return set(re.findall(r"^([a-z0-9.-]+==[^ ;]+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_requirements_hold_pins_and_hashes_and_no_address(path):
    """An address would send everybody's machine to one registry, and break on machines that have another."""
    for line in path.read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==\S+( ; [^\\]+)? \\| {4}--hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_what_tests_run_with_is_what_users_run_with():
    assert {path.name for path in REQUIREMENTS} == {"run.txt", "dev.txt", "java.txt", "bench-peer.txt"}
    assert pins(ROOT / "requirements/run.txt") <= pins(ROOT / "requirements/dev.txt")


def test_no_source_file_is_too_long_to_read():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert not {name for name, lines in lengths.items() if lines > MAX_LINES}


def test_no_module_hides_under_a_name_that_says_nothing():
    names = {"utils.py", "helpers.py", "common.py", "base.py", "manager.py"}
    assert [str(path) for path in SOURCES if path.name in names] == []


def test_make_help_lists_every_target():
    text = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE).group(1).split())
    explained = set(re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE))
    assert phony - explained == {"dev", "s3-server"}
    assert explained <= phony
