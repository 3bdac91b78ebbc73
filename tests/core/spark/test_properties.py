"""The user's settings for Spark: read by its JVM, and in no argument of a process."""

import os
import re
from pathlib import Path

import pytest

from kgs_core.config.settings import SparkSettings
from kgs_core.spark.properties import hand_over
from kgs_core.spark.session import prepare_spark


@pytest.fixture(autouse=True)
def arguments(monkeypatch):
    """The environment is put back."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    return lambda: os.environ.get("PYSPARK_SUBMIT_ARGS", "")


def handed_over():
    found = re.match(r"--properties-file (\S+) --load-spark-defaults ", os.environ["PYSPARK_SUBMIT_ARGS"])
    return Path(found.group(1))


def test_no_argument_holds_a_setting_of_the_user(arguments):
    settings = {"spark.hadoop.fs.s3a.secret.key": "s3cr3t", "spark.driver.memory": "2g", "spark.ui.enabled": True}
    config = prepare_spark(SparkSettings(settings=settings), "kgs-g")
    assert not settings.keys() & config.keys(), "ours would win over the user's, and be seen"
    assert config["spark.master"] == "local[1]"
    assert "s3cr3t" not in arguments() + str(config)
    assert handed_over().read_text() == (
        "spark.hadoop.fs.s3a.secret.key=s3cr3t\nspark.driver.memory=2g\nspark.ui.enabled=true\n"
    )
    assert arguments().endswith(" pyspark-shell")


def test_nothing_of_it_is_on_disk():
    hand_over({"spark.x": "s3cr3t"})
    assert os.readlink(handed_over()).startswith("/memfd:")


def test_what_a_properties_file_would_take_for_something_else_is_written_as_its_number():
    hand_over({"spark.a b": " =:#\\\nü𝄞"})
    numbers = ["0020", "003d", "003a", "0023", "005c", "000a", "00fc", "d834", "dd1e"]
    assert handed_over().read_text() == f"spark.a\\u0020b={''.join(chr(92) + 'u' + n for n in numbers)}\n"


def test_arguments_of_the_user_stay_and_the_last_settings_count(monkeypatch, arguments):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    hand_over({"spark.x": "1"})
    first = handed_over()
    hand_over({"spark.x": "2"})
    assert handed_over() != first
    assert arguments().count("--properties-file") == 1
    assert arguments().endswith(" --load-spark-defaults --packages a:b:1 pyspark-shell")
    hand_over({})
    assert arguments() == "--packages a:b:1 pyspark-shell"
