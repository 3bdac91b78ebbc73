"""`python -m bench scale` and `python -m bench readings`, as small as they go: they measure something of everything."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.system.pipeline import BENCH

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def bench(file: Path, *words: str) -> Any:
    command = [*BENCH, *words, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=380)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(file.read_text())


def test_a_tiny_group_is_packed_and_follows_the_step(tmp_path: Path) -> None:
    (found,) = bench(tmp_path / "s.json", "scale", "--partitions", "40", "--consumers", "4", "--steady", "3")["sizes"]
    assert found["readers"] in (3, 4)
    assert found["first_s"] > 0
    assert found["step_cpu_s"] > 0
    assert found["member_bytes_per_s"] > 0
    assert found["stored_bytes_per_s"] > 0
    assert found["monitor_bytes_per_s"] > 0


def test_a_reading_knows_all_partitions(tmp_path: Path) -> None:
    found = bench(tmp_path / "r.json", "readings", "--partitions", "20", "--readings", "2")
    assert [(each["partitions"], each["unknown"]) for each in found] == [(20, 0), (20, 0)]
    assert all(each["seconds"] > 0 and each["cpu_s"] > 0 for each in found)
