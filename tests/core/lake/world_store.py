"""The table's store as a dictionary of the world's: each request is a step of the writer that makes it."""

import json
from collections.abc import Collection

import pyarrow as pa
from deltalake import Schema

from kgs_core.lake.delta.delta_log import LogState, read_state
from kgs_core.lake.delta.log_store import EntryExistsError, LogListing, LogStore, entry_name
from kgs_core.lake.delta.table_log import FileGoneError, TableLog, TableMetadata
from kgs_core.lake.files.columns import misfits
from kgs_core.lake.files.intent_store import IntentStore
from kgs_core.lake.files.storage import Storage
from kgs_core.ports import FileWritten
from tests.one_column import SCHEMA


class WorldLog(TableLog):
    """A table's log in that store; `request` carries an effect out as a step."""

    def __init__(self, request, world, lake, schema=SCHEMA):
        super().__init__(Storage("/nowhere"), "t", schema, lake)
        self._request, self._world = request, world

    def connected(self) -> LogStore:
        return WorldLogStore(self._request, self._world)

    def _read_anew(self) -> LogState:
        self.state = None
        state = read_state(self.connected())
        assert state is not None
        actions = [json.loads(line) for n in range(state.changed + 1) for line in self._world.entries[n].splitlines()]
        found = [action["metaData"] for action in actions if "metaData" in action][-1]
        columns = pa.schema(Schema.from_json(found["schemaString"]))
        assert not misfits(self.schema, columns)
        self._metadata = TableMetadata(found, columns)
        return state

    def check_file(self, file: FileWritten) -> None:
        def look() -> None:
            if file.path not in self._world.files:
                raise FileGoneError(file.path)

        self._request(look)


class WorldLogStore(LogStore):
    """Port `LogStore`."""

    def __init__(self, request, world):
        self._request, self._world = request, world
        self._entries = world.entries

    def since(self, version: int | None) -> LogListing:
        return self._request(
            lambda: LogListing({n: str(n) for n in self._entries if version is None or n >= version}, {})
        )

    def read(self, name: str) -> bytes:
        if name == "_last_checkpoint":
            raise FileNotFoundError(name)
        return self.entry(int(name[:20]))[0]

    def entry(self, version: int) -> tuple[bytes, str]:
        def read() -> tuple[bytes, str]:
            if version not in self._entries:
                raise FileNotFoundError(entry_name(version))
            return self._entries[version], str(version)

        return self._request(read)

    def create(self, version: int, data: bytes) -> str:
        def make() -> str:
            if version in self._entries:
                raise EntryExistsError(version)
            self._entries[version] = data
            return str(version)

        return self._request(make)


class WorldIntents(IntentStore):
    """In place of `IntentStore`."""

    def __init__(self, request, world):
        self._request, self._world = request, world

    def put(self, name: str, data: bytes) -> None:
        self._request(lambda: self._world.intents.setdefault(name, (self._world.now, data)))

    def ages(self) -> dict[str, float]:
        return self._request(lambda: {name: self._world.now - made for name, (made, _) in self._world.intents.items()})

    def read(self, name: str) -> bytes:
        def found() -> bytes:
            if name not in self._world.intents:
                raise FileNotFoundError(name)
            return self._world.intents[name][1]

        return self._request(found)

    def remove(self, names: Collection[str]) -> None:
        self._request(lambda: [self._world.intents.pop(name, None) for name in names])
