"""`python -m bench topics` as a user runs it: slow tables, and one that hangs, end no consumer."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.system.pipeline import BENCH

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPICS = 40
HUNG = 2


def test_forty_topics_on_a_slow_lake_are_all_read_and_no_step_is_as_long_as_an_opening_of_all(tmp_path: Path) -> None:
    """One after the other they take longer than `--batch-timeout`: 40 x 8 calls x 0.1 s, and the two for ever."""
    out = tmp_path / "out.json"
    options = ["--topics", TOPICS, "--hung", HUNG, "--lake-delay-ms", 100, "--rounds", 3, "--seconds", 240]
    command = [*BENCH, "topics", *map(str, options), "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(out.read_text())
    assert found["first_rows_s"] <= found["all_read_s"], "none waits for the last one"
    assert len(found["rounds_s"]) == 3
    assert f"all {TOPICS - HUNG} topics open" in done.stdout
    print(done.stdout)
