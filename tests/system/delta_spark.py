"""The peer's Spark with Delta, for a script of some lines."""

import subprocess

from bench.peer_environment import peer_environment
from kgs_core.spark.java import find_java

_SESSION = """
import json, sys
from pyspark.sql import SparkSession
jars, *arguments = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.driver.extraClassPath", f"{jars}/*")
builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "America/New_York")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
"""


def rows_of_spark(script: str, *arguments: str) -> str:
    """Run the script with `spark` and `arguments`; JSON text of the rows that it leaves in `rows`."""
    environment = peer_environment(find_java(), print)
    whole = f'{_SESSION}{script}\nprint("ROWS" + json.dumps(rows))\nspark.stop()\n'
    command = [str(environment.python), "-c", whole, str(environment.jars), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    (line,) = [line for line in result.stdout.splitlines() if line.startswith("ROWS")]
    return line.removeprefix("ROWS")
