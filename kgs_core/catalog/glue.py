"""AWS Glue's data catalogue as the port `Catalog`: external Delta tables as Athena, Spark and others look for them."""

from collections.abc import Callable, Mapping
from typing import Any

from kgs_core.catalog.catalog import Catalog, CatalogEntry, Registration, found_or_made, refuse_other_place
from kgs_core.catalog.column_types import sql_type
from kgs_core.catalog.http_answers import STEPS
from kgs_core.config import Settings
from kgs_core.config.catalog import CatalogSettings
from kgs_core.errors import ConfigError, PermanentError, TransientError, one_line
from kgs_core.extras import require
from kgs_core.system.bounded_call import answer_within

_PASSING = {
    "ConcurrentModificationException", "InternalServiceException", "OperationTimeoutException", "ThrottlingException",
    "Throttling", "RequestLimitExceeded", "ResourceNotReadyException", "ExpiredTokenException",
}  # fmt: skip
_MOST_COMMENT, _MOST_DESCRIPTION = 255, 2048
_FAILURE = 500
_ATTEMPTS = 2
_IS_DELTA = {
    "EXTERNAL": "TRUE",
    "classification": "delta",
    "table_type": "DELTA",
    "spark.sql.sources.provider": "delta",
}


def open_glue(settings: Settings, catalog: CatalogSettings) -> "GlueCatalog":
    """The catalogue of these settings; it is not asked yet.

    Raises:
        ConfigError: boto3 is not installed, or knows no region; the lake is not on S3.
    """
    require("glue", "catalog: kind 'glue'")
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    if not settings.lake.root.startswith("s3://"):
        raise ConfigError([f"catalog: kind 'glue' is for a lake on s3://, not {settings.lake.root}: use another kind"])
    options = {key.lower(): value for key, value in settings.lake.storage_options.items()}
    config = Config(
        connect_timeout=catalog.timeout_s, read_timeout=catalog.timeout_s, retries={"total_max_attempts": _ATTEMPTS}
    )
    try:
        session = boto3.session.Session(region_name=options.get("aws_region"))  # the default one would keep old keys
        client = session.client("glue", endpoint_url=catalog.url, config=config)
    except (BotoCoreError, ValueError, OSError) as e:
        raise ConfigError(
            [f"catalog: glue: {one_line(e)}: check lake.storage_options.aws_region and the environment"]
        ) from e
    return GlueCatalog(client, _ATTEMPTS * STEPS * catalog.timeout_s)


class GlueCatalog(Catalog):
    """Port `Catalog`."""

    def __init__(self, client: Any, timeout_s: float) -> None:
        """Catalogue that is asked by this client; each answer may take so long, with all its attempts."""
        self._client = client
        self._timeout_s = timeout_s

    def close(self) -> None:
        """See `Catalog`."""
        self._client.close()

    def register(self, entry: CatalogEntry) -> Registration:
        """See `Catalog`."""
        database, table = entry.name.split(".")
        there = found_or_made(entry.name, lambda: self._table(database, table), lambda: self._create(database, entry))
        if there is None:
            return Registration.CREATED
        storage = there.get("StorageDescriptor") or {}
        location = storage.get("Location") or ""
        refuse_other_place(entry, location)
        given = {key.lower(): str(value).lower() for key, value in (there.get("Parameters") or {}).items()}
        if not any(given.get(key) == "delta" for key in ("table_type", "classification", "spark.sql.sources.provider")):
            raise PermanentError(f"{entry.name} is at {location} there, but not as a Delta table: drop it there")
        keys = there.get("PartitionKeys") or []  # a crawler's; we leave them as they are
        found = {c["Name"].lower(): c.get("Type", "") for c in [*(storage.get("Columns") or []), *keys]}
        if found == {f["name"].lower(): sql_type(f["type"]) for f in entry.table.fields}:
            return Registration.UNCHANGED
        self._update(database, entry, there)
        return Registration.UPDATED

    def _table(self, database: str, table: str) -> Mapping[str, Any] | None:
        answer = self._ask(f"{database}.{table}", self._client.get_table, DatabaseName=database, Name=table)
        if isinstance(answer, str):
            if answer == "EntityNotFoundException":
                return None
            raise TransientError(f"{database}.{table}: {answer}")
        found = answer.get("Table")
        if not isinstance(found, Mapping):
            raise TransientError(f"{database}.{table}: no answer as Glue's: check catalog.url")
        return found

    def _create(self, database: str, entry: CatalogEntry) -> bool:
        """Whether it was made; False: it is there already."""
        given = {"DatabaseName": database, "TableInput": _new_table(entry)}
        answer = self._ask(entry.name, self._client.create_table, **given)
        if answer == "EntityNotFoundException":
            self._ask(entry.name, self._client.create_database, DatabaseInput={"Name": database})
            answer = self._ask(entry.name, self._client.create_table, **given)
        if answer == "EntityNotFoundException":
            raise TransientError(f"{entry.name}: its database is not there, though it was made just now")
        return bool(answer != "AlreadyExistsException")

    def _update(self, database: str, entry: CatalogEntry, there: Mapping[str, Any]) -> None:
        """Other columns; all else of the entry stays as it is."""
        taken = self._client.meta.service_model.shape_for("TableInput").members
        table = {key: value for key, value in there.items() if key in taken}
        keys = {key["Name"].lower() for key in there.get("PartitionKeys") or ()}
        words = {
            c["Name"].lower(): c["Comment"] for c in there["StorageDescriptor"].get("Columns") or () if c.get("Comment")
        }
        columns = [c for c in _columns(entry, words) if c["Name"].lower() not in keys]
        table["StorageDescriptor"] = {**there["StorageDescriptor"], "Columns": columns}
        version = {"VersionId": there["VersionId"]} if there.get("VersionId") else {}
        answer = self._ask(entry.name, self._client.update_table, DatabaseName=database, TableInput=table, **version)
        if isinstance(answer, str):
            raise TransientError(f"{entry.name}: changed by another client meanwhile: {answer}")

    def _ask(self, what: str, question: Callable[..., Any], **given: Any) -> Any:
        """The answer; where it is that something is there, or is not, the name of that error."""
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.exceptions import ConnectionError as NoConnectionError

        try:
            return answer_within(self._timeout_s, lambda: question(**given), "glue")
        except ClientError as e:
            error, status = e.response.get("Error", {}), e.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code = str(error.get("Code", ""))
            if code in ("EntityNotFoundException", "AlreadyExistsException"):
                return code
            if code in _PASSING or status >= _FAILURE:
                raise TransientError(f"{what}: Glue fails: {one_line(e)}") from e
            raise PermanentError(f"{what}: Glue refuses: {one_line(e)}: check rights and keys") from e
        except (HTTPClientError, NoConnectionError, TimeoutError) as e:
            raise TransientError(f"Glue does not answer: {one_line(e)}") from e
        except BotoCoreError as e:  # no credentials, or what botocore cannot make of an answer
            raise PermanentError(f"{what}: Glue cannot be asked: {one_line(e)}: check the environment") from e


def _new_table(entry: CatalogEntry) -> dict[str, Any]:
    description = entry.table.description
    return {
        "Name": entry.name.split(".")[1],
        "TableType": "EXTERNAL_TABLE",
        "Parameters": dict(_IS_DELTA),
        "StorageDescriptor": {
            "Columns": _columns(entry, {}),
            "Location": entry.location,
            # What Delta's own connectors write: readers that take it for files of another kind fail at once
            "InputFormat": "org.apache.hadoop.mapred.SequenceFileInputFormat",
            "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            "SerdeInfo": {
                "SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                "Parameters": {"serialization.format": "1", "path": entry.location},
            },
        },
        **({"Description": description[:_MOST_DESCRIPTION]} if description else {}),
    }


def _columns(entry: CatalogEntry, words: Mapping[str, str]) -> list[dict[str, str]]:
    """All of them, partition columns too: Delta's readers go by the log, and Glue knows none of its partitions.

    `words`: what people have said of columns in the catalogue, by their names in lower case.
    """
    found = []
    for field in entry.table.fields:
        comment = words.get(field["name"].lower()) or field["metadata"].get("comment")
        more = {"Comment": comment[:_MOST_COMMENT]} if comment else {}
        found.append({"Name": field["name"], "Type": sql_type(field["type"]), **more})
    return found
