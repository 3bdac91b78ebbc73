"""Random faults from a seed: one broker in `make test`, three in `make soak`; `make chaos` is the same by hand."""

import time

import pytest

from tests.system.chaos.__main__ import FOLDER
from tests.system.chaos.options import Options
from tests.system.chaos.report import run

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow(150),
    pytest.mark.timeout(2400),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # kafka-python leaves sockets open
]
WITHOUT_SPARK = ("consumers", "group", "controller", "brokers", "disk")
SPARK_ABOVE_ALL = ("spark", "kill_driver", "freeze_whole_run", "kill_controller", "kill_broker", "fill_disk")


def assert_right(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    verdict = run(FOLDER / f"test-{options.seed}", options, lines.append)
    assert not verdict.problems, "\n".join(lines[-60:])
    with capsys.disabled():
        print(f"\n{options.command()}: {verdict.figures}")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(0, 2, 1, SPARK_ABOVE_ALL), marks=pytest.mark.spark),
        Options(0, 3, 1, WITHOUT_SPARK, spark=False),
    ],
    ids=["Spark", "without Spark"],
)
def test_faults_on_one_broker(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    """Real processes that die, freeze and fill the disk at any moment; without Spark they start in a second."""
    assert_right(options, capsys)


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("spark", [False, pytest.param(True, marks=pytest.mark.spark)])
def test_every_fault_once_on_three_brokers(spark: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the seed, each fault strikes: it says when, whom, for how long, and beside which others."""
    assert_right(Options(0, 1, spark=spark), capsys)


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.spark
@pytest.mark.timeout(9000)
def test_an_hour_of_a_seed_that_nobody_has_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """Told when it fails, so that it can be repeated."""
    assert_right(Options.of_words(["SECONDS=3600"], int(time.time())), capsys)  # noqa: TID251 - a new one each time
