"""Temporary files of Spark: a dead process' are removed by the next start, a living one's never.

With processes of their own: it is the kernel that tells who lives.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from kgs_core.spark.temporary_folder import spark_folder
folder = spark_folder()
if folder is not None:
    (folder / "blockmgr-1").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path):
    started = []

    def begin():
        environ = {**os.environ, "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        started.append(process)
        return process, process.stdout.readline().strip()

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_process_left_is_removed_by_the_next_start_and_what_a_living_one_has_stays(start):
    killed, left = start()
    _, living = start()
    assert len({left, living}) == 2
    killed.kill()
    killed.wait()
    assert os.path.isdir(left)
    _, newest = start()
    assert [os.path.isdir(folder) for folder in (left, living, newest)] == [False, True, True]
    assert os.path.isdir(os.path.join(living, "blockmgr-1"))


def test_a_place_that_is_somebody_elses_is_not_used(start, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"kgs-spark-{os.getuid()}").symlink_to(elsewhere)
    assert start()[1] == "None"
    assert list(elsewhere.iterdir()) == []
