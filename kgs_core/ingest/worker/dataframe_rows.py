"""A topic's DataFrame transform on rows that are here already, in a Spark session of its own."""

from typing import TYPE_CHECKING

import pyarrow as pa

from kgs_core.config.settings import SparkSettings
from kgs_core.ingest.worker.process_batch import TransformError, check_count, check_rows
from kgs_core.ingest.worker.topic_job import TopicPlan, load_hook
from kgs_core.spark.errors import cause
from kgs_core.spark.session import start_spark, stop_spark
from kgs_core.system.closing import Closing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkTransform(Closing):
    """A session that is started by the first rows, and ends with the context."""

    def __init__(self, settings: SparkSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._spark: SparkSession | None = None

    def rows(self, plan: TopicPlan, rows: pa.Table) -> pa.Table:
        """Rows after the user's `transform`, in the table's columns; it is not asked about none.

        Raises:
            TransformError: it raised, lost the origin columns, or broke its promise.
            PermanentError: there is no Java.
        """
        if not rows.num_rows:
            return plan.given.empty_table()
        if self._spark is None:
            self._spark = start_spark(self._settings, self._name)
        spec = plan.spec
        try:
            frame = load_hook(str(spec.rule.transform))(self._spark.createDataFrame(rows), spec.topic)
            out = frame.select(*plan.given.names).toArrow().cast(plan.given).combine_chunks()
        except (Exception, SystemExit) as e:
            raise TransformError(f"transform {spec.rule.transform}: {type(e).__name__}: {cause(e)}") from e
        check_rows(spec, out)
        check_count(spec, out.num_rows, rows.num_rows)
        return out

    def close(self) -> None:
        """End the session, if there is one."""
        if self._spark is not None:
            stop_spark(self._spark)
            self._spark = None
