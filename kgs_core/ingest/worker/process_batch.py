"""From records of one topic to rows that can be written: parse, set bad records aside, transform, check the promise.

This is the arrow processor's way. Of the dataframe processor, whose transform is Spark's, only the checks are here.
"""

from collections.abc import Mapping

import pyarrow as pa

from kgs_core.config import TableSpec
from kgs_core.ingest.fetch.topic_records import TopicRecords
from kgs_core.ingest.worker.earlier_reading import earlier_reading
from kgs_core.ingest.worker.parsed_records import parse_records
from kgs_core.ingest.worker.sorted_records import Sorted, ranges_before, sort_records
from kgs_core.ingest.worker.topic_job import MoreColumnsError, TopicJob, TopicPlan, load_hook
from kgs_core.lake.files.layout import Partitioned, unfit
from kgs_core.lake.files.row_schema import IDENTITY
from kgs_core.lake.files.storage import Storage
from kgs_core.model import OffsetRange


class TransformError(Exception):
    """The user's transform raised, or gave rows that its promise does not allow."""


def prepare_topic(
    storage: Storage, job: TopicJob, records: TopicRecords, ranges: Mapping[int, OffsetRange]
) -> tuple[Sorted, Partitioned]:
    """What becomes of the records, and its rows after the transform.

    Raises:
        MoreColumnsError: nothing was made of the records: first the table is to be given more columns.
        TransformError: the transform raised or broke its promise.
        TransientError: the dead letters that are there already could not be read.
    """
    plan = job.plan
    earlier = earlier_reading(storage, job, ranges)
    while True:
        parsed = parse_records(plan, records)
        if more := plan.more_columns(parsed.missing):
            raise MoreColumnsError(pa.schema(more))
        found = sort_records(job, ranges, records, parsed, earlier)
        rows = transform_arrow(plan, found.rows)
        partitioned = Partitioned(plan.spec.rule, rows)
        if (left := partitioned.cut()) is None:
            return found, partitioned
        # Once more with fewer records, from the parser on: a transform may have made its rows of those left out, too
        records, ranges = records.before(left), ranges_before(ranges, left)


def transform_arrow(plan: TopicPlan, rows: pa.Table) -> pa.Table:
    """Rows after the user's `transform_arrow`, in the table's columns; it is not asked about none.

    Raises:
        TransformError: it raised, lost the origin columns, or broke its promise.
    """
    spec, hook = plan.spec, plan.spec.rule.transform_arrow
    if hook is None:
        return rows.combine_chunks()
    if not rows.num_rows:
        return plan.given.empty_table()
    try:
        out = load_hook(hook)(rows, spec.topic)
        out = out.select(plan.given.names).cast(plan.given).combine_chunks()
    except (Exception, SystemExit) as e:  # one that ends the process would take the other topics with it
        raise TransformError(f"transform_arrow {hook}: {type(e).__name__}: {e}") from e
    check_rows(spec, out)
    check_count(spec, out.num_rows, rows.num_rows)
    return out


def check_rows(spec: TableSpec, out: pa.Table) -> None:
    """Whether each row says which record it is of, that it is its only one, and has values that partitions can have.

    Raises:
        TransformError: one does not.
    """
    if (problem := next(iter(unfit(spec.rule, out).values()), None)) is not None:
        raise TransformError(f"topic {spec.topic}: {problem}")
    if any(out.column(name).null_count for name in IDENTITY):
        raise TransformError(f"the transform of {spec.topic} left nulls in {', '.join(IDENTITY)}")
    if spec.rule.rows == "any":
        return
    pairs = out.select(["_partition", "_offset"]).group_by(["_partition", "_offset"]).aggregate([])
    if pairs.num_rows != out.num_rows:
        raise TransformError(f"the transform of {spec.topic} gives several rows for one record: say rows: any")


def check_count(spec: TableSpec, rows: int, rows_in: int) -> None:
    """Whether the transform kept `rows: ...` in number.

    Raises:
        TransformError: it did not.
    """
    promise = spec.rule.rows
    if (promise != "any" and rows > rows_in) or (promise == "one_to_one" and rows != rows_in):
        raise TransformError(
            f"the transform of {spec.topic} gives {rows} rows for {rows_in} records against rows: {promise}"
        )
