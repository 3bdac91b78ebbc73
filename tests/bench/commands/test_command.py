"""What `bench ingest` takes and prints."""

import signal
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import bench_group


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_benchmark_and_its_folder(monkeypatch, number):
    """SIGINT also where a shell has it ignored, as for all that `&` starts."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    made = []

    def run():
        with tempfile.TemporaryDirectory() as folder:
            made.append(Path(folder))
            signal.raise_signal(number)
        raise AssertionError("it went on")

    monkeypatch.setattr(bench_group.commands["readings"], "callback", run)
    monkeypatch.setattr(bench_group.commands["readings"], "params", [])
    try:
        result = CliRunner().invoke(bench_group, ["readings"])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert (result.exit_code, result.output.strip()) == (1, "Aborted!")
    assert [folder.exists() for folder in made] == [False]
