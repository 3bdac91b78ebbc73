"""Plain consumers to compare with: what a user has who subscribes with a client's defaults, in Java and in Python."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, Self

from confluent_kafka import Consumer
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from bench.unread import Advance
from kgs_core.embedded_kafka.jars import kafka_jars
from kgs_core.spark.java import find_java

_POLL_S = 0.1
_AT_ONCE = 1000
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"

Ends = Iterable[tuple[int, int]]
"""Partition and the offset after the last record that was read of it."""


class PlainClient(Protocol):
    """A client of Kafka with one subscription."""

    def poll(self) -> Ends:
        """What a moment's wait brings; nothing if there is nothing."""

    def close(self) -> None:
        """Ends it, without waiting for a broker."""


class LibrdkafkaClient:
    """confluent-kafka's consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "plain-librdkafka"}
        self._consumer = Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0})
        self._consumer.subscribe([topic])

    def poll(self) -> Ends:
        """As the port says."""
        for message in self._consumer.consume(_AT_ONCE, _POLL_S):
            if message.error() is None:
                yield int(message.partition() or 0), int(message.offset() or 0) + 1

    def close(self) -> None:
        """Without the consumer's own `close`, which waits for its coordinator."""


class JavaClient:
    """Kafka's own consumer, in a JVM of its own."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        java = find_java().java
        jars = kafka_jars(find_java(), lambda _: None)
        port, token = launch_gateway(
            classpath=f"{jars}/*",
            javaopts=list(_JVM),
            java_path=str(java),
            die_on_exit=True,
            enable_auth=True,
            create_new_process_group=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        jvm = self._gateway.jvm
        settings = jvm.java.util.Properties()
        for key, value in {
            "bootstrap.servers": bootstrap,
            "group.id": "plain-java",
            "auto.offset.reset": "earliest",
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
        }.items():
            settings.setProperty(key, value)
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
        self._consumer.subscribe(jvm.java.util.List.of(topic))
        self._wait = jvm.java.time.Duration.ofMillis(int(_POLL_S * 1000))

    def poll(self) -> Ends:
        """As the port says."""
        records = self._consumer.poll(self._wait)
        for tp in records.partitions():
            of = records.records(tp)
            yield tp.partition(), of.get(of.size() - 1).offset() + 1

    def close(self) -> None:
        """Ends the JVM."""
        self._gateway.shutdown()


class PlainConsumer:
    """One of them, polled by a thread of its own while the block runs.

    Attributes:
        advances: partition -> what was read, and when.
    """

    def __init__(self, client: PlainClient) -> None:
        self.advances: dict[int, list[Advance]] = {}
        self._client = client
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(client).__name__, daemon=True)

    def _run(self) -> None:
        while not self._is_over.is_set():
            for partition, end in self._client.poll():
                self.advances.setdefault(partition, []).append(Advance(time.time(), end))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()


PLAIN: dict[str, Callable[[str, str], PlainClient]] = {"Java": JavaClient, "librdkafka": LibrdkafkaClient}
