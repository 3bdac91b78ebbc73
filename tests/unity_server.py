"""Unity Catalog's few routes on loopback, for tests: schemas, tables, and changes of columns by the Delta API.

It refuses as the open source server does (0.6): TABLE_ALREADY_EXISTS and SCHEMA_ALREADY_EXISTS with status 400, a
`type_json` that does not fit its column, nested types in the other form than the Delta API's, a change without the
entry's id.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from tests.loopback_http import LoopbackServer, QuietHandler

API = "/api/2.1/unity-catalog"
Reply = tuple[int, dict[str, Any]]
_PLAIN = {"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "STRING", "BINARY"}
_TYPE_NAMES = _PLAIN | {"TIMESTAMP_NTZ", "DECIMAL", "ARRAY", "STRUCT", "MAP"}


class UnityServer(LoopbackServer):
    """A running catalogue.

    Attributes:
        tables: full name -> TableInfo.
        schemas: full names of those that are there.
        has_delta_api: as servers before 0.5 have not.
        token: that it wants; None: it takes everybody.
        asked: method and path of every question that was heard.
        before: called with method and path before a question is judged; its answer, if any, is given instead.
        lost_replies: how many of the next questions are carried out and not answered.
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Any]] = {}
        self.schemas = {"main.default"}
        self.has_delta_api = True
        self.token: str | None = None
        self.asked: list[tuple[str, str]] = []
        self.before: Callable[[str, str], bytes | Reply | None] = lambda *_: None
        self.lost_replies = 0
        server = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name that http.server asks for
                self._answer("GET")

            def do_POST(self) -> None:  # noqa: N802 - the name that http.server asks for
                self._answer("POST")

            def _answer(self, method: str) -> None:
                body = self.body()
                path = self.path.removeprefix(API)
                server.asked.append((method, path))
                given = server.before(method, path)
                if isinstance(given, bytes):
                    self.wfile.write(given)
                    return
                found = given or server.answer(method, path, self.headers.get("Authorization"), body)
                if method == "POST" and server.lost_replies:
                    server.lost_replies -= 1
                    return
                self.reply(found[0], json.dumps(found[1]).encode())

        super().__init__(Handler)

    def answer(self, method: str, path: str, authorization: str | None, body: bytes) -> Reply:
        if self.token is not None and authorization != f"Bearer {self.token}":
            return _error(401, "UNAUTHENTICATED", f"bad token {authorization}")
        given = json.loads(body or b"{}")
        if path.startswith("/delta/v1/"):
            return self._delta(method, path, given)
        if method == "POST" and path == "/schemas":
            return self._new_schema(given)
        if method == "POST" and path == "/tables":
            return self._new_table(given)
        found = self.tables.get(path.removeprefix("/tables/"))
        return (200, found) if found else _error(404, "TABLE_NOT_FOUND", "Table not found")

    def _new_schema(self, given: dict[str, Any]) -> Reply:
        name = f"{given['catalog_name']}.{given['name']}"
        if given["catalog_name"] != "main":
            return _error(404, "CATALOG_NOT_FOUND", f"Catalog not found: {given['catalog_name']}")
        if name in self.schemas:
            return _error(400, "SCHEMA_ALREADY_EXISTS", name)
        self.schemas.add(name)
        return 200, {"name": given["name"]}

    def _new_table(self, given: dict[str, Any]) -> Reply:
        schema = f"{given['catalog_name']}.{given['schema_name']}"
        name = f"{schema}.{given['name']}"
        if schema not in self.schemas:
            return _error(404, "SCHEMA_NOT_FOUND", f"Schema not found: {schema}")
        if name in self.tables:
            return _error(400, "TABLE_ALREADY_EXISTS", f"Table already exists: {name}")
        if given["table_type"] != "EXTERNAL" or not given["storage_location"].startswith(("s3://", "file:///")):
            return _error(400, "INVALID_ARGUMENT", "Only external tables")
        for column in given["columns"]:
            field = json.loads(column["type_json"])
            if (field["name"], field["nullable"]) != (column["name"], column["nullable"]) or "metadata" not in field:
                return _error(400, "INVALID_ARGUMENT", f"Invalid type_json for column {column['name']}")
            if column["type_name"] not in _TYPE_NAMES or not column["type_text"]:
                return _error(400, "INVALID_ARGUMENT", f"Invalid type_name {column['type_name']}")
        self.tables[name] = {**given, "table_id": str(uuid.uuid4()), "updated_at": 1}
        return 200, self.tables[name]

    def _delta(self, method: str, path: str, given: dict[str, Any]) -> Reply:
        if not self.has_delta_api:
            return 404, {}
        _, _, _, _, catalog, _, schema, _, table = path.split("/")
        found = self.tables.get(f"{catalog}.{schema}.{table}")
        if found is None:
            return _delta_error(404, "NoSuchTableException")
        etag = str(found["updated_at"])
        if method == "GET":
            return 200, {"metadata": {"etag": etag, "table-uuid": found["table_id"]}}
        wanted = {each["type"]: each for each in given["requirements"]}
        if wanted["assert-table-uuid"]["uuid"] != found["table_id"] or wanted["assert-etag"]["etag"] != etag:
            return _delta_error(409, "UpdateRequirementConflictException")
        (update,) = given["updates"]
        found["columns"] = [
            {
                "name": f["name"],
                "type_json": json.dumps({**f, "type": _spark_type(f["type"])}),
                "position": n,
                "comment": f["metadata"].get("comment"),
            }
            for n, f in enumerate(update["columns"]["fields"])
        ]
        found["updated_at"] += 1
        return 200, {"metadata": {"etag": str(found["updated_at"]), "table-uuid": found["table_id"]}}


def _spark_type(kind: Any) -> Any:
    """Refuses (by a KeyError, so without an answer) what is not in the Delta API's form."""
    if not isinstance(kind, dict):
        return kind
    if kind["type"] == "array":
        return {
            "type": "array",
            "elementType": _spark_type(kind["element-type"]),
            "containsNull": kind["contains-null"],
        }
    if kind["type"] == "map":
        return {
            "type": "map",
            "keyType": _spark_type(kind["key-type"]),
            "valueType": _spark_type(kind["value-type"]),
            "valueContainsNull": kind["value-contains-null"],
        }
    return {"type": "struct", "fields": [{**f, "type": _spark_type(f["type"])} for f in kind["fields"]]}


def _error(status: int, code: str, message: str) -> Reply:
    return status, {"error_code": code, "message": message}


def _delta_error(status: int, kind: str) -> Reply:
    return status, {"error": {"type": kind, "message": kind, "code": status}}


def hang(seconds: float) -> Callable[[str, str], None]:
    """A `before` that answers late."""
    return lambda *_: time.sleep(seconds)
