"""Processes of a run, found by their environment."""

import os
from pathlib import Path

from kgs_core.system import processes


def test_a_process_that_is_just_beginning_is_found(tmp_path: Path, monkeypatch):
    """Its environment is empty until the kernel has put the new program's there."""
    environ = tmp_path / str(os.getpid()) / "environ"
    environ.parent.mkdir()
    environ.touch()
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    monkeypatch.setattr(processes.time, "sleep", lambda _: environ.write_bytes(b"A=b\0KGS_RUN_ID=g/1/x\0"))
    assert [[each.pid for each in found] for found in processes.find_runs("g/").values()] == [[os.getpid()]]
