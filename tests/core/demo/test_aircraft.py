"""Aircraft's positions in Avro: which records, and the change of their schema at noon."""

import io
import json
from datetime import date, datetime, time

import fastavro
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from kgs_core.config import parse_settings
from kgs_core.config.registry import RegistrySettings
from kgs_core.demo.aircraft import AFTERNOON, AIRCRAFT_TOPIC, MORNING, NEW_COLUMN, SUBJECT, AircraftReplay, column_line
from kgs_core.demo.layout import Layout
from kgs_core.demo.registry_stub import running_registry
from kgs_core.demo.replay import NEW_YORK, open_replay
from kgs_core.registry.client import open_registry

DAY = date(2013, 9, 18)
NOON = datetime.combine(DAY, time(12), NEW_YORK)


@pytest.fixture(scope="module")
def around_noon():
    """Records of ten minutes before noon and ten behind it, and the schemas by their ids."""
    with running_registry() as registry:
        registry.register(SUBJECT, json.dumps(MORNING))
        client = open_registry(RegistrySettings(url=registry.url))
        replay = AircraftReplay(open_replay(DAY, time(11, 50), 60.0).due, client.register, DAY)
        records = [*replay.due(0, 10), *replay.due(10, 20)]
        yield records, {number: json.loads(client.by_id(number).text) for number in (1, 2)}, client.latest(SUBJECT)


def read(value, schemas):
    number = int.from_bytes(value[1:5], "big")
    return number, fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schemas[number]))


def test_schema_gains_a_nullable_column_at_noon_and_not_before(around_noon):
    records, schemas, latest = around_noon
    assert (schemas[1], schemas[2], json.loads(latest.text)) == (MORNING, AFTERNOON, AFTERNOON)
    seen = {1: 0, 2: 0}
    for record in records:
        if record.topic == AIRCRAFT_TOPIC:
            number, found = read(record.value, schemas)
            assert (found["event_time"] >= NOON) == (number == 2) == (NEW_COLUMN in found)
            seen[number] += 1
    assert min(seen.values()) > 100


def test_they_are_the_reports_of_the_first_seconds_of_each_minute_beside_all_others(around_noon):
    records, schemas, _ = around_noon
    others = [record for record in records if record.topic != AIRCRAFT_TOPIC]
    assert others == open_replay(DAY, time(11, 50), 60.0).due(0, 20)
    wanted = [
        (record.key, at, values["lat"], values["altitude_ft"])
        for record in others
        if "lat" in (values := json.loads(record.value))
        and (at := datetime.fromisoformat(values["event_time"])).second < 10
    ]
    avro = [(record.key, read(record.value, schemas)[1]) for record in records if record.topic == AIRCRAFT_TOPIC]
    assert [(key, v["event_time"], v["place"]["lat"], v["altitude_ft"]) for key, v in avro] == wanted


def test_the_configuration_has_its_rule_and_the_registry_where_there_is_one(tmp_path):
    layout = Layout(tmp_path, registry_url="http://127.0.0.1:1")
    settings = parse_settings(layout.configuration("127.0.0.1:9092").encode(), "kgs.yaml", {})
    rule = settings.rule_of(AIRCRAFT_TOPIC)
    assert (rule.format, rule.evolve, settings.registry.url) == ("avro", "add_columns", layout.registry_url)
    assert layout.generate_command("h:1")[-4:-2] == ["--registry", layout.registry_url]


def test_the_end_says_whether_the_table_has_the_column_and_in_how_many_rows(tmp_path):
    text = Layout(tmp_path, registry_url="http://127.0.0.1:1").configuration("127.0.0.1:9092")
    settings = parse_settings(text.replace("root: lake", f"root: {tmp_path}").encode(), "kgs.yaml", {})
    assert "which has not come" in column_line(settings), "no table"
    table = str(tmp_path / AIRCRAFT_TOPIC)
    write_deltalake(table, pa.table({"tailnum": ["a", "b"]}))
    assert "which has not come" in column_line(settings)
    more = pa.table({"tailnum": ["c", "d", "e"], NEW_COLUMN: pa.array([5, None, -3], pa.int32())})
    write_deltalake(table, more, mode="append", schema_mode="merge")
    assert column_line(settings).endswith("when the schema gained it at noon; 2 of 5 rows have it")
