"""Aircraft's positions in Avro, beside the flight replay: their schema gains a nullable column at noon of the day."""

import io
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from typing import Any

from kgs_core.config import Settings
from kgs_core.demo.replay import NEW_YORK, TOPIC_OF, FlightRecord
from kgs_core.errors import PermanentError
from kgs_core.lake.topics.factory import open_lake
from kgs_core.ports import PinnedTable

AIRCRAFT_TOPIC = "flights.aircraft"
SUBJECT = f"{AIRCRAFT_TOPIC}-value"
NEW_COLUMN = "dep_delay_min"
_POSITION_TOPICS = frozenset(TOPIC_OF.values())
_TEN_SECONDS = slice(32, 33)
"""Where `{"event_time":"2013-09-18T08:00:03` has the tens of its seconds: to take records apart is dear."""


def _schema(*more: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": "event_time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tailnum", "type": "string"},
        {"name": "aircraft", "type": ["null", "string"]},
        {"name": "place", "type": {"type": "record", "name": "Place", "fields": _PLACE}},
        {"name": "altitude_ft", "type": "int"},
        *more,
    ]
    return {"type": "record", "name": "Aircraft", "fields": fields}


_PLACE = [{"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}]
MORNING = _schema()
AFTERNOON = _schema({"name": NEW_COLUMN, "type": ["null", "int"], "default": None})


class AircraftReplay:
    """A flight replay and, of each aircraft, the reports of the first ten seconds of a minute in Avro, too."""

    def __init__(
        self, due: Callable[[float, float], list[FlightRecord]], register: Callable[[str, str], int], day: date
    ) -> None:
        """`register` takes subject and schema and gives an id; at noon of `day`, New York time, the schema changes."""
        self._due = due
        self._register = register
        self._noon = datetime.combine(day, time(12), NEW_YORK)
        self._written: dict[bool, tuple[bytes, Any]] = {}

    def due(self, from_s: float, to_s: float) -> Iterator[FlightRecord]:
        """Records due in [from_s, to_s) of the replay, seconds. Raises `PortError` if the registry takes no schema."""
        for record in self._due(from_s, to_s):
            yield record
            if record.topic in _POSITION_TOPICS and record.value[_TEN_SECONDS] == b"0":
                yield FlightRecord(AIRCRAFT_TOPIC, record.key, self._value(json.loads(record.value)))

    def _value(self, report: dict[str, Any]) -> bytes:
        import fastavro  # the extra `avro`, which other loads do without

        at = datetime.fromisoformat(report["event_time"])
        frame, schema = self._frame(is_afternoon=at >= self._noon)
        out = io.BytesIO(frame)
        out.seek(len(frame))
        place = {"lat": report["lat"], "lon": report["lon"]}
        fastavro.schemaless_writer(out, schema, {**report, "event_time": at, "place": place})
        return out.getvalue()

    def _frame(self, *, is_afternoon: bool) -> tuple[bytes, Any]:
        if is_afternoon not in self._written:
            import fastavro

            schema = AFTERNOON if is_afternoon else MORNING
            number = self._register(SUBJECT, json.dumps(schema))
            self._written[is_afternoon] = (b"\0" + number.to_bytes(4, "big"), fastavro.parse_schema(schema))
        return self._written[is_afternoon]


def column_line(settings: Settings) -> str:
    """What became of the new column, in words. Raises `PortError` if the lake does not answer."""
    table = open_lake(settings.lake).pin(AIRCRAFT_TOPIC)
    try:
        if table is not None:
            table.check_readable([NEW_COLUMN])
    except PermanentError:
        table = None
    if table is None:
        return f"{AIRCRAFT_TOPIC}: its schema gains {NEW_COLUMN} at noon of the replayed day, which has not come"
    filled = sum(_filled(table, file) for file in table.files())
    return (
        f"{AIRCRAFT_TOPIC}: column {NEW_COLUMN} was added to the table when the schema gained it at noon; "
        f"{filled:,} of {table.contents().rows or 0:,} rows have it"
    )


def _filled(table: PinnedTable, file: str) -> int:
    try:
        column = table.read(file, [NEW_COLUMN]).column(0)
    except ValueError:  # Arrow's: a file of the morning has no such column
        return 0
    return len(column) - int(column.null_count)
