"""What a demonstration needs is looked for before anything is started."""

import pytest
from rich.console import Console

from kgs_core.demo import run
from kgs_core.demo.flights import find_data
from kgs_core.demo.run import DemoOptions, run_demo
from kgs_core.errors import PermanentError


def test_without_the_flights_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "find_data", lambda: find_data("no_such_package"))
    with pytest.raises(PermanentError, match="no_such_package is not installed: pip install"):
        run_demo(DemoOptions(tmp_path / "kept", None, 432.0, keep=False, bare=True), Console())
    assert not (tmp_path / "kept").exists()
