"""What a real JVM makes of the settings, and what `ps` shows of it: only Spark's own start can tell."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import os
import psutil
from kgs_core.spark.session import start_spark, stop_spark
from kgs_core.config.settings import SparkSettings
secret = "p\u00e4ss w=rd\\\\" + "x7q"
settings = {"spark.hadoop.fs.s3a.secret.key": secret, "spark.driver.memory": "600m", "spark.ui.enabled": False}
spark = start_spark(SparkSettings(settings=settings), "kgs-test")
try:
    assert spark.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key") == secret
    assert spark.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == secret
    assert spark.range(3).count() == 3
    children = psutil.Process().children(recursive=True)
    families = [child.cmdline() for child in children if child.status() != psutil.STATUS_ZOMBIE]
    assert any("-Xmx600m" in words for words in families), "the user's memory, and not ours"
    assert not [word for words in families for word in words if "x7q" in word or "fs.s3a" in word]
finally:
    stop_spark(spark)
print("seen")
"""


def test_a_secret_reaches_spark_and_stands_in_no_argument() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout.strip()[-4:]) == (0, "seen"), done.stderr[-3000:]
