"""The demonstration from the wheel, with no source beside it: what nobody with a checkout would notice is missing.

A real broker and real Spark, because the files that could be missing are those that their processes need.
"""

from pathlib import Path

import pytest

from tests.wheel import build_wheel, install, kgs

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_demonstration_runs_from_the_wheel_to_its_proof(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "elsewhere").mkdir()
    install(build_wheel(tmp_path / "source"), tmp_path / "elsewhere")
    done = kgs(tmp_path / "elsewhere", "demo", "--bare", "--seconds", "30", timeout_s=800)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "exactly once: " in done.stdout + done.stderr
