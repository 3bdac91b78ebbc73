"""Run events of OpenLineage: the group is the job, one life of a consumer is a run of it.

Datasets are named by OpenLineage's naming: a topic is `kafka://broker:port` and its name; a table is `s3://bucket` and
its path in it, or `file` and its path.
"""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from kgs_core.config import Settings
from kgs_core.config.lake_root import split_root


@dataclass(frozen=True, slots=True)
class LineageTable:
    """A topic, and the table that it goes into. `table`: its path under the lake's root."""

    topic: str
    table: str
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class RunNews:
    """What is to be said of a run.

    Attributes:
        kind: START, RUNNING, COMPLETE or FAIL.
        at: seconds since 1970.
        tables: that it concerns.
    """

    kind: str
    at: float
    tables: tuple[LineageTable, ...] = ()
    why: str = ""


def run_event(news: RunNews, settings: Settings, namespace: str, run_id: str) -> Any:
    """The event, as openlineage-python has it; that package must be installed."""
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
    from openlineage.client.generated.job_type_job import JobTypeJobFacet

    broker = settings.kafka.bootstrap_servers.partition(",")[0]
    topics = dict.fromkeys(each.topic for each in news.tables)
    facets: dict[str, Any] = {"errorMessage": ErrorMessageRunFacet(news.why, "PYTHON")} if news.kind == "FAIL" else {}
    kind = JobTypeJobFacet(processingType="STREAMING", integration="KGS", jobType="CONSUMER")
    return RunEvent(
        eventTime=dt.datetime.fromtimestamp(news.at, dt.UTC).isoformat(),
        producer=f"urn:kgs:{version('kgs')}",
        eventType=RunState(news.kind),
        run=Run(run_id, facets),
        job=Job(namespace, settings.group, {"jobType": kind}),
        inputs=[InputDataset(f"kafka://{broker}", topic) for topic in topics],
        outputs=[
            OutputDataset(*table_name(settings.lake.root, each.table), facets=_facets(each.schema))
            for each in news.tables
        ],
    )


def table_name(root: str, table: str) -> tuple[str, str]:
    """Namespace and name of a table.

    Args:
        root: of the lake: absolute path, or s3://bucket/prefix, and so on.
        table: path under it.
    """
    scheme, bucket, prefix = split_root(root)
    if not scheme:
        return "file", f"{root.rstrip('/')}/{table}"
    return f"{scheme}://{bucket}", f"{prefix}/{table}" if prefix else table


def _facets(schema: pa.Schema) -> dict[str, Any]:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet
    from openlineage.client.generated.storage_dataset import StorageDatasetFacet

    return {"schema": SchemaDatasetFacet(_fields(schema)), "storage": StorageDatasetFacet("delta", "parquet")}


def _fields(fields: Iterable[pa.Field]) -> list[Any]:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacetFields

    return [
        SchemaDatasetFacetFields(field.name, _type(field.type), fields=_fields(_inside(field.type)), ordinal_position=n)
        for n, field in enumerate(fields, start=1)
    ]


def _type(kind: pa.DataType) -> str:
    for is_kind, name in ((pa.types.is_struct, "struct"), (pa.types.is_map, "map"), (pa.types.is_list, "array")):
        if is_kind(kind):
            return name
    return str(kind)


def _inside(kind: pa.DataType) -> list[pa.Field]:
    """Fields inside a type; those of a list and a map by the names that OpenLineage gives them."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
    return [pa.field("_element", kind.value_type)] if pa.types.is_list(kind) else []
