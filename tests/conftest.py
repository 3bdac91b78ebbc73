"""Marks tests by the folder they lie in; where several run at once, long ones come first, the longest of all.

In `system` every second worker begins at the other end: see its `conftest.py`. No second try for tests that inject
faults, no skips where CI runs them.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import Phase, settings

# How long an example takes says how busy the machine is, and nothing about what is tested
settings.register_profile("kgs", deadline=None)
settings.load_profile("kgs")
# For `make mutants`: the same examples for every change, and none made smaller that fails
settings.register_profile("mutants", deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])

# What a command prints depends on the terminal, as its user wants it; here it must not
for _name in ("COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)
# numpy starts a thread for each core as it is imported, and they spin: a tenth of what a process's start costs
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nor on how the tests were started: in the background of a shell SIGINT is ignored, and would be by all they start
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Dagster's databases and Kafka wait for the disk at each step, and no test is about a power failure
_MEMORY = Path("/dev/shm")
_FREE_BYTES, _AVAILABLE_BYTES = 4 << 30, 12 << 30
_is_fit = _MEMORY.is_dir() and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC and os.access(_MEMORY, os.W_OK)
if _is_fit and shutil.disk_usage(_MEMORY).free > _FREE_BYTES and psutil.virtual_memory().available > _AVAILABLE_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

_SYSTEM = Path(__file__).parent / "system"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--second-try",
        action="store_true",
        help="These tests failed beside others: those marked `chaos` fail at once, for a fault that shows once in ten "
        "times is a fault.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _SYSTEM in item.path.parents:
            item.add_marker("system")
    if hasattr(config, "workerinput"):  # else, at the end, one worker may be at a long one and the other at nothing
        items.sort(key=seconds_of, reverse=True)


def seconds_of(item: pytest.Item) -> float:
    """About how long a test takes, as far as its marker says: `slow(150)`, or `slow`, which sorts before the rest."""
    slow = item.get_closest_marker("slow")
    return 0.0 if slow is None else slow.args[0] if slow.args else 1.0


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.config.getoption("second_try") and item.get_closest_marker("chaos"):
        pytest.fail("no second try: it injects faults", pytrace=False)
    # Consumers start in a second instead of ten where it is not Spark that is tested
    os.environ["KGS_BATCH_RUNNER"] = "spark" if item.get_closest_marker("spark") else "local"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where CI runs the tests, a system test that was skipped has not been run: a failure there, with its reason."""
    report = yield
    is_ours = item.get_closest_marker("system") and os.environ.get("CI", "").lower() in ("true", "1")
    if is_ours and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as failed where CI is set: {report.longrepr[2]}"
    return report
