"""`kgs check lake` on a disk; with each kind of server: `test_lake_in_a_store.py`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kgs_core.cli.main import cli
from kgs_core.errors import TransientError
from kgs_core.lake.delta import probe as storage_probe
from kgs_core.lake.delta import store_check
from kgs_core.lake.delta.log_store import DiskLog, LogListing
from kgs_core.lake.delta.store_check import check_store
from kgs_core.lake.files.storage import Storage


def check(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["check", "lake", *arguments])


def test_a_disk_can_hold_a_lake_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    result = check(str(tmp_path / "lake"))
    assert result.exit_code == 0, result.output
    assert [line[:5] for line in result.output.splitlines()] == ["yes  "] * 8 + [f"{tmp_path}"[:5]]
    assert [found for _, _, files in os.walk(tmp_path) for found in files] == []


def test_for_programs_and_by_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "kgs.yaml").write_text(
        "group: g\nkafka: {bootstrap_servers: 'b:9092'}\nlake: {root: lake}\ntopics: [{topic: a, table: t}]"
    )
    result = check("--json", "--config", str(tmp_path / "kgs.yaml"))
    found: list[dict[str, Any]] = [json.loads(line) for line in result.output.splitlines()]
    assert [each["problem"] for each in found] == [None] * 8
    assert not (tmp_path / "lake").exists()  # one that is not there may have been moved


def test_a_store_that_takes_two_writers_is_refused_as_unsafe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_probe, "_race", lambda *_: 2)
    result = check(str(tmp_path))
    assert result.exit_code == 3
    assert "no   refuse the second of two writers of one name" in result.output
    assert "let two writers commit the same version" in result.output.splitlines()[-1]


def test_a_listing_that_lacks_what_was_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(DiskLog):
        def since(self, version: int | None) -> LogListing:
            found = super().since(version)
            return found if version is None else LogListing({}, {})

    monkeypatch.setattr(store_check, "log_store", lambda storage, table: Late(Path(storage.uri(table), "_delta_log")))
    result = check(str(tmp_path))
    assert result.exit_code == 1
    assert [line[:3] for line in result.output.splitlines()[:7]] == ["yes", "yes", "no ", "yes", "yes", "yes", "yes"]
    assert "each commit would list the whole log" in result.output.splitlines()[-1]


def test_a_root_that_cannot_be_written_ends_it_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = check(str(tmp_path / "file"))
    assert result.exit_code == 1
    first, error = result.output.splitlines()
    assert first.startswith("no   write a file")
    assert error.startswith(f"error: lake {tmp_path}/file: cannot be written")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["ftp://x"], "ADDRESS: this scheme is not supported"),
        (["s3://bucket/x", "--option", "aws_region"], "--option aws_region: write NAME=VALUE"),
        (["s3://bucket/x", "--option", "aws_s3_allow_unsafe_rename=true"], "loses commits: remove it"),
    ],
)
def test_what_is_meant_must_make_sense(arguments: list[str], problem: str) -> None:
    result = check(*arguments)
    assert result.exit_code in (2, 3)
    assert problem in result.output.splitlines()[-1]


def test_a_store_that_does_not_answer_is_not_asked_to_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hang once more."""
    options = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "r", "allow_http": "true"}
    storage = Storage("s3://b/lake", {**options, "aws_endpoint_url": "http://127.0.0.1:9", "max_retries": "0"})
    asked: list[str] = []
    monkeypatch.setattr(store_check, "remove_probe", lambda _, table: asked.append(table))
    (finding,) = check_store(storage)
    assert isinstance(finding.problem, TransientError)
    assert asked == []


def test_what_a_killed_probe_has_left_is_no_torn_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(storage_probe, "remove_probe", lambda *_: None)
        storage_probe.probe(Storage(str(tmp_path)))
    assert [*tmp_path.glob("_kgs_probe/*/_delta_log")]
    result = check(str(tmp_path))
    assert result.exit_code == 0, result.output


def test_a_table_that_nobody_can_open_is_named(tmp_path: Path) -> None:
    log = tmp_path / "b/of others/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text('{"add": {"path": 7}}')
    result = check(str(tmp_path))
    assert result.exit_code == 3
    assert "table b/of others: " in result.output.splitlines()[-1]
