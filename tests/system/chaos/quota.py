"""A quota on what clients read, by Kafka's own client in a JVM of its own: librdkafka and kafka-python set none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import (  # type: ignore[import-untyped]  # ships no types
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # as above

from kgs_core.embedded_kafka.jars import kafka_jars
from kgs_core.spark.java import find_java

ANSWER_S = 8
"""While brokers are away nothing else is healed for so long, and they are not either."""


def set_quota(bootstrap: str, bytes_per_s: float | None) -> None:
    """How fast any client may read from each broker; None: as fast as it can.

    Raises:
        TimeoutError: the brokers did not answer, or not yet.
    """
    try:
        _set_quota(bootstrap, bytes_per_s)
    except Py4JError as e:
        raise TimeoutError("no answer about quotas") from e


def _set_quota(bootstrap: str, bytes_per_s: float | None) -> None:
    with _jvm() as jvm:
        quota, util = jvm.org.apache.kafka.common.quota, jvm.java.util
        entity, settings = util.HashMap(), util.Properties()
        entity.put("client-id", None)  # the default of those that have none of their own
        settings.put("bootstrap.servers", bootstrap)
        settings.put("default.api.timeout.ms", str(ANSWER_S * 1000))  # `close` waits for so long
        settings.put("request.timeout.ms", str(ANSWER_S * 500))
        operation = getattr(quota, "ClientQuotaAlteration$Op")("consumer_byte_rate", bytes_per_s)
        change = quota.ClientQuotaAlteration(quota.ClientQuotaEntity(entity), util.Collections.singletonList(operation))
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            answer = admin.alterClientQuotas(util.Collections.singletonList(change)).all()
            answer.get(ANSWER_S, util.concurrent.TimeUnit.SECONDS)
        finally:
            admin.close()


@contextmanager
def _jvm() -> Iterator[Any]:
    java = find_java()
    classes, options = f"{kafka_jars(java, print)}/*", ["-Xmx128m", "-XX:-UsePerfData"]
    port, token = launch_gateway(
        classpath=classes, java_path=str(java.java), javaopts=options, die_on_exit=True, enable_auth=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
