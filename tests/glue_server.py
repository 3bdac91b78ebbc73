"""AWS Glue's few actions on loopback, for tests: databases, tables, and their changes by version.

It speaks the protocol that AWS's clients do (JSON 1.1), and refuses as Glue does: names of errors in `__type`, status
400, a change of another version than the newest, columns without a type.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.loopback_http import LoopbackServer, QuietHandler

Reply = tuple[int, dict[str, Any]]


class GlueServer(LoopbackServer):
    """A running catalogue.

    Attributes:
        tables: (database, name) -> Table.
        databases: names of those that are there.
        asked: actions, in order.
        before: called with the action before it is judged; its answer, if any, is given instead.
        lost_replies: how many of the next creations are carried out and not answered.
    """

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.databases = {"default"}
        self.asked: list[str] = []
        self.before: Callable[[str], Reply | None] = lambda _: None
        self.lost_replies = 0
        server = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name that http.server asks for
                given = json.loads(self.body())
                action = self.headers["X-Amz-Target"].removeprefix("AWSGlue.")
                server.asked.append(action)
                status, answer = server.before(action) or getattr(server, action)(given)
                if action == "CreateTable" and server.lost_replies:
                    server.lost_replies -= 1
                    return
                self.reply(status, json.dumps(answer).encode(), "application/x-amz-json-1.1")

        super().__init__(Handler)

    def GetTable(self, given: dict[str, Any]) -> Reply:  # noqa: N802 - Glue's name
        found = self.tables.get((given["DatabaseName"], given["Name"]))
        return (200, {"Table": found}) if found else error("EntityNotFoundException", "no such table")

    def CreateDatabase(self, given: dict[str, Any]) -> Reply:  # noqa: N802
        name = given["DatabaseInput"]["Name"]
        if name in self.databases:
            return error("AlreadyExistsException", name)
        self.databases.add(name)
        return 200, {}

    def CreateTable(self, given: dict[str, Any]) -> Reply:  # noqa: N802
        database, table = given["DatabaseName"], given["TableInput"]
        if database not in self.databases:
            return error("EntityNotFoundException", f"Database {database} not found")
        if (database, table["Name"]) in self.tables:
            return error("AlreadyExistsException", table["Name"])
        return self._put(database, table, "0")

    def UpdateTable(self, given: dict[str, Any]) -> Reply:  # noqa: N802
        database, table = given["DatabaseName"], given["TableInput"]
        there = self.tables[database, table["Name"]]
        if given.get("VersionId") != there["VersionId"]:
            return error("ConcurrentModificationException", "another version")
        return self._put(database, table, str(int(there["VersionId"]) + 1))

    def _put(self, database: str, table: dict[str, Any], version: str) -> Reply:
        if not all(column["Name"] and column["Type"] for column in table["StorageDescriptor"]["Columns"]):
            return error("InvalidInputException", "a column without a type")
        more = {"DatabaseName": database, "VersionId": version, "CreatedBy": "arn:aws:iam::1:user/x", "CatalogId": "1"}
        self.tables[database, table["Name"]] = {**table, **more}
        return 200, {}


def error(kind: str, message: str, status: int = 400) -> Reply:
    """An error as Glue gives it."""
    return status, {"__type": kind, "Message": message}
