"""Unity Catalog as the port `Catalog`: external tables, by the REST API of its open source server.

Tables are looked up and created by API 2.1 (`/tables`, `/schemas`), which cannot change a table. Columns are changed by
the UC Delta API (`/delta/v1`), which servers have since 0.5; each change names the entry's id and etag, so that it is
refused where somebody else was faster.
"""

import json
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2

from kgs_core.catalog.catalog import Catalog, CatalogEntry, Registration, found_or_made, refuse_other_place
from kgs_core.catalog.column_types import decimal_digits, sql_type, type_name
from kgs_core.catalog.http_answers import Answer, ask
from kgs_core.config import Settings
from kgs_core.config.catalog import CatalogSettings
from kgs_core.errors import ConfigError, PermanentError, TransientError, one_line
from kgs_core.system.secret_files import with_secrets

API = "/api/2.1/unity-catalog"
_CAPITAL = re.compile("[A-Z]")
_BAD, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _NO_METHOD, _CONFLICT = 400, 401, 403, 404, 405, 409
_PASSING = (408, 429)
_FAILURE, _NOT_IMPLEMENTED = 500, 501
_NO_SUCH_API = (_NOT_FOUND, _NO_METHOD, _NOT_IMPLEMENTED)


def open_unity(_: Settings, catalog: CatalogSettings) -> "UnityCatalog":
    """The catalogue of these settings; it is not asked yet.

    Raises:
        ConfigError: the token cannot be one.
        PermanentError: the file that `token` names cannot be read.
    """
    token = None if catalog.token is None else with_secrets("catalog", {"token": catalog.token})["token"]
    if token is not None and not (token.isascii() and token.isprintable()):
        raise ConfigError(["catalog: the token has characters that no header can have: check it"])
    return UnityCatalog(str(catalog.url), token, catalog.timeout_s)


class UnityCatalog(Catalog):
    """Port `Catalog`."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._timeout_s = timeout_s
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._client = httpx2.Client(headers=headers, timeout=timeout_s, verify=ssl.create_default_context())

    def close(self) -> None:
        """See `Catalog`."""
        self._client.close()

    def register(self, entry: CatalogEntry) -> Registration:
        """See `Catalog`."""
        there = found_or_made(entry.name, lambda: self._table(entry.name), lambda: self._create(entry))
        if there is None:
            return Registration.CREATED
        location, form = there.get("storage_location"), there.get("data_source_format")
        refuse_other_place(entry, location)
        if form != "DELTA":
            raise PermanentError(f"{entry.name} is at {location} there, but as {form}, not DELTA: drop it there")
        if _kinds(there.get("columns")) == [(f["name"], f["type"]) for f in entry.table.fields]:
            return Registration.UNCHANGED
        return self._update(entry, there)

    def _table(self, name: str) -> Mapping[str, Any] | None:
        answer = self._ask("GET", f"/tables/{quote(name, safe='')}")
        if answer.status == _NOT_FOUND and answer.code:
            return None
        there = self._checked(name, answer)
        if "table_type" not in there and "storage_location" not in there:
            raise self._other_server(f"{name}: the entry is not a table")
        return there

    def _create(self, entry: CatalogEntry) -> bool:
        """Whether it was made; False: it is there already."""
        answer = self._ask("POST", "/tables", _new_table(entry))
        if answer.status == _NOT_FOUND and answer.code:
            self._create_schema(entry.name)
            answer = self._ask("POST", "/tables", _new_table(entry))
        if _is_there(answer):
            return False
        self._checked(entry.name, answer)
        return True

    def _create_schema(self, name: str) -> None:
        catalog, schema, _ = name.split(".")
        answer = self._ask("POST", "/schemas", {"name": schema, "catalog_name": catalog})
        if answer.status == _NOT_FOUND and answer.code:
            raise PermanentError(f"{name}: catalog '{catalog}' does not exist: create it, or change catalog.name")
        if not _is_there(answer):
            self._checked(f"schema {catalog}.{schema}", answer)

    def _update(self, entry: CatalogEntry, there: Mapping[str, Any]) -> Registration:
        catalog, schema, table = (quote(part, safe="") for part in entry.name.split("."))
        path = f"/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}"
        answer = self._ask("GET", path)
        if answer.status in _NO_SUCH_API:
            return Registration.OUTDATED
        metadata = self._checked(entry.name, answer).get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("table-uuid") or not metadata.get("etag"):
            raise self._other_server(f"{entry.name}: its entry has no id")
        words = {c["name"]: c["comment"] for c in there.get("columns") or () if c.get("comment")}
        request = {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": there.get("table_id") or metadata["table-uuid"]},
                {"type": "assert-etag", "etag": metadata["etag"]},
            ],
            "updates": [
                {
                    "action": "set-columns",
                    "columns": {"type": "struct", "fields": [_with_words(f, words) for f in entry.table.fields]},
                }
            ],
        }
        answer = self._ask("POST", path, request)
        if answer.status in _NO_SUCH_API:
            return Registration.OUTDATED
        self._checked(entry.name, answer)
        return Registration.UPDATED

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        try:
            return ask(self._client, method, f"{self._url}{API}{path}", body, self._timeout_s)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as e:
            raise TransientError(f"catalogue {self._url} does not answer: {one_line(e)}") from e

    def _checked(self, what: str, answer: Answer) -> Mapping[str, Any]:
        """What a good answer says."""
        status = answer.status
        if status == 200 and answer.tree is not None:  # noqa: PLR2004
            return answer.tree
        message = answer.message or f"status {status}"  # which a server may well repeat our token in
        said = one_line(Exception(message.replace(self._token, "...") if self._token else message))
        where = f"{what}: catalogue {self._url}"
        if status >= _FAILURE or status in _PASSING or status == _CONFLICT:
            raise TransientError(f"{where} fails: {said}")
        if status == _UNAUTHORIZED:
            raise PermanentError(f"{where} rejects the credentials: {said}: check catalog.token")
        if status == _FORBIDDEN:
            raise PermanentError(f"{where} refuses: {said}: give catalog.token's owner the right")
        if status < _BAD or not answer.code:
            raise self._other_server(f"{what}: status {status}")
        raise PermanentError(f"{where} refuses: {said}")

    def _other_server(self, what: str) -> TransientError:
        return TransientError(f"{self._url} does not answer as Unity Catalog does: check catalog.url: {what}")


def _is_there(answer: Answer) -> bool:
    return answer.status in (_BAD, _CONFLICT) and answer.code.endswith("ALREADY_EXISTS")


def _new_table(entry: CatalogEntry) -> dict[str, Any]:
    catalog, schema, table = entry.name.split(".")
    partitions = {name: n for n, name in enumerate(entry.table.partition_by)}
    return {
        "name": table,
        "catalog_name": catalog,
        "schema_name": schema,
        "table_type": "EXTERNAL",
        "data_source_format": "DELTA",
        "storage_location": entry.location,
        "columns": [_column(field, n, partitions.get(field["name"])) for n, field in enumerate(entry.table.fields)],
        **({"comment": entry.table.description} if entry.table.description else {}),
    }


def _column(field: Mapping[str, Any], position: int, partition: int | None) -> dict[str, Any]:
    kind, comment, digits = field["type"], field["metadata"].get("comment"), decimal_digits(field["type"])
    return {
        "name": field["name"],
        "type_text": sql_type(kind),
        "type_json": json.dumps(field, separators=(",", ":")),
        "type_name": {"integer": "INT"}.get(type_name(kind), type_name(kind).upper()),
        "position": position,
        "nullable": field["nullable"],
        **({"type_precision": digits[0], "type_scale": digits[1]} if digits else {}),
        **({"comment": comment} if comment else {}),
        **({"partition_index": partition} if partition is not None else {}),
    }


def _kinds(columns: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, Any]] | None:
    """Names and types of columns as the catalogue has them; None where it does not say."""
    try:
        found = sorted(columns or (), key=lambda column: column.get("position") or 0)
        return [(column["name"], _kind(json.loads(column["type_json"]))) for column in found]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _kind(field: Any) -> Any:
    return field["type"] if isinstance(field, dict) and "name" in field else field


def _with_words(field: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """The field in the Delta API's form, with the words that people have given it in the catalogue."""
    comment = words.get(field["name"])
    more = {"comment": comment} if comment else {}
    return {**field, "type": _delta_api_type(field["type"]), "metadata": {**field["metadata"], **more}}


def _delta_api_type(kind: Any) -> Any:
    """The type with the Delta API's names: `element-type` for `elementType`."""
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": [{**f, "type": _delta_api_type(f["type"])} for f in kind["fields"]]}
    return {_CAPITAL.sub(lambda sign: f"-{sign[0].lower()}", name): _delta_api_type(of) for name, of in kind.items()}
