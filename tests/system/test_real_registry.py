"""Values of the field's own serializers, by schemas of a registry that others wrote; it dies and comes back."""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.protobuf_values import field, file_of, message_class
from tests.system.apicurio import Apicurio, running_apicurio
from tests.system.pipeline import Pipeline, produce
from tests.waiting import wait_until

pytestmark = [pytest.mark.neighbours, pytest.mark.chaos, pytest.mark.slow(90), pytest.mark.timeout(600)]
Serialize = Callable[[dict[str, Any]], bytes]
Made = tuple[dict[str, Any], Serialize, Serialize | None]
"""Rule of a topic; its serializers, of keys too where they have a schema."""
PLACE = {"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "x", "type": "double"}]}
ORDER = [{"name": "i", "type": "long"}, {"name": "of", "type": "shop.Place"}]
MORE = [*ORDER, {"name": "more", "type": ["null", "string"], "default": None}]
PLACE_SCHEMA = {"$id": "place.json", "type": "object", "properties": {"x": {"type": "number"}}}
ORDER_SCHEMA = {"type": "object", "properties": {"i": {"type": "integer"}, "of": {"$ref": "place.json"}}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    with running_apicurio(tmp_path_factory.mktemp("apicurio")) as registry:
        yield registry


@pytest.fixture
def registry(running: Apicurio) -> Apicurio:
    """Up, whatever the test before has left."""
    running.start()
    return running


def avro(client: SchemaRegistryClient, topic: str, *, newer: bool = False) -> Made:
    client.register_schema(f"{topic}-place", Schema(json.dumps(PLACE), "AVRO"))
    record = {"type": "record", "name": "Order", "namespace": "shop", "fields": MORE if newer else ORDER}
    of_place = SchemaReference("shop.Place", f"{topic}-place", 1)
    value = AvroSerializer(client, Schema(json.dumps(record), "AVRO", [of_place]))  # type: ignore[no-untyped-call]
    key = {"type": "record", "name": "Key", "fields": [{"name": "i", "type": "long"}]}
    of_key = AvroSerializer(client, json.dumps(key))  # type: ignore[no-untyped-call]
    rule = {"format": "avro", "evolve": "add_columns", "key_format": "avro", "key_schema": {"i": "long"}}
    return (
        rule,
        lambda row: value(row, SerializationContext(topic, MessageField.VALUE)),
        lambda row: of_key({"i": row["i"]}, SerializationContext(topic, MessageField.KEY)),
    )


def protobuf(client: SchemaRegistryClient, topic: str, *, newer: bool = False) -> Made:
    place = file_of(f'message_type {{ name: "Place" {field("x", 1, "DOUBLE")} }}', name="place.proto", package="shop")
    fields = field("i", 1, "INT64") + field("of", 2, ".shop.Place") + (field("more", 3, "STRING") if newer else "")
    order = file_of(
        f'message_type {{ name: "Order" {fields} }}', "order.proto", dependencies=["place.proto"], package="shop"
    )
    made = message_class(order, "shop.Order", [place])
    value = ProtobufSerializer(made, client, {"use.deprecated.format": False})  # type: ignore[no-untyped-call]

    def serialize(row: dict[str, Any]) -> bytes:
        message = made(i=row["i"], **({"more": row["more"]} if row.get("more") else {}))
        message.of.x = row["of"]["x"]
        found: bytes = value(message, SerializationContext(topic, MessageField.VALUE))
        return found

    return {"format": "protobuf", "evolve": "add_columns"}, serialize, None


def json_schema(client: SchemaRegistryClient, topic: str, *, newer: bool = False) -> Made:
    client.register_schema(f"{topic}-place", Schema(json.dumps(PLACE_SCHEMA), "JSON"))
    properties = ORDER_SCHEMA["properties"] | ({"more": {"type": "string"}} if newer else {})  # type: ignore[operator]
    schema = Schema(
        json.dumps(ORDER_SCHEMA | {"properties": properties}),
        "JSON",
        [SchemaReference("place.json", f"{topic}-place", 1)],
    )
    number = client.register_schema(f"{topic}-value", schema)
    return (
        {"format": "json_schema", "evolve": "add_columns"},
        lambda row: b"\0" + struct.pack(">i", number) + json.dumps(row).encode(),
        None,
    )


@pytest.mark.parametrize("kind", [avro, protobuf, json_schema])
def test_every_value_is_a_row_while_its_registry_changes_dies_and_comes_back(
    kind: Callable[..., Made],
    registry: Apicurio,
    kafka: EmbeddedKafka,
    topic_prefix: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    topic = f"{topic_prefix}{kind.__name__}"
    # It waits for ever unless told; a request that the registry forgets is asked again
    client = SchemaRegistryClient({"url": registry.url, "timeout": 10})
    request.addfinalizer(client.close)
    rule, value, key = kind(client, topic)
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, [{"topic": topic, **rule}], registry=registry.url)
    pipeline.admin.create_topic(topic, 2)
    rows = [{"i": i, "of": {"x": i / 2}} for i in range(900)]

    def send(these: list[dict[str, Any]]) -> None:
        keys = [key(row) for row in these] if key else None
        produce(kafka.bootstrap_servers, topic, [value(row) for row in these], keys)

    send(rows[:300])
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up([topic])
        rule, value, key = kind(client, topic, newer=True)
        for row in rows[300:]:
            row["more"] = f"m{row['i']}"
        send(rows[300:600])
        pipeline.wait_caught_up([topic])
        consumer.destroy()
    late = [value(row) for row in rows[600:]], [key(row) for row in rows[600:]] if key else None
    registry.kill()
    produce(kafka.bootstrap_servers, topic, *late)
    with pipeline.consumer(2) as consumer:  # it knows no schema yet
        wait_until(lambda: "schema registry" in consumer.tail(), 60, "it says what it waits for")
        registry.start()
        pipeline.wait_caught_up([topic])
        produce(
            kafka.bootstrap_servers, topic, [b"\0" + struct.pack(">i", 999_999) + b"x"], [key(rows[0])] if key else None
        )
        (reason,) = consumer.wait_stopped().values()
        assert "has no schema 999999" in reason
    assert_all_are_there(pipeline, topic, rows, kind)


def assert_all_are_there(pipeline: Pipeline, topic: str, rows: list[dict[str, Any]], kind: Callable[..., Made]) -> None:
    found = [{name: row.get(name) for name in ("i", "of", "more")} for row in pipeline.rows(topic)]
    empty = "" if kind is protobuf else None
    wanted = [{**row, "more": row.get("more") or (empty if row["i"] >= 300 else None)} for row in rows]
    assert sorted(found, key=lambda row: row["i"]) == wanted
    if kind is avro:
        assert all(row["key_i"] == row["i"] for row in pipeline.rows(topic))
    assert pipeline.rows(f"{topic}_dead_letters") == []
