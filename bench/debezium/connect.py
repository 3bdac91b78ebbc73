"""Kafka Connect on this machine with Debezium's connector for PostgreSQL: one worker, as a user would configure it."""

import json
import os
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.debezium.postgres import OWNER, Postgres
from kgs_core.accel.cache_dir import build_once, cache_directory
from kgs_core.embedded_kafka.jars import resolve_jars
from kgs_core.errors import PermanentError
from kgs_core.spark.java import find_java
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation

DEBEZIUM = "3.6.1.Final"
_CONNECT = "4.3.0"  # of the Kafka that this Debezium is made for: 4.4 lacks classes that it asks for
_JARS = (
    f"io.debezium:debezium-connector-postgres:{DEBEZIUM}",
    f"org.apache.kafka:connect-runtime:{_CONNECT}",
    "org.apache.logging.log4j:log4j-slf4j2-impl:2.25.4",
)
PREFIX = "shop"
"""First part of the names of its topics: `shop.public.customers`."""
SIGNALS = "public.signals"
"""Table whose rows ask the connector for a new snapshot."""
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_LOG_SETTINGS = """rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""
_START_TIMEOUT_S = 180.0
_ANSWER_TIMEOUT_S = 10.0
_POLL_S = 0.2


def connect_jars(log: Callable[[str], None]) -> Path:
    """The folder of the worker's and the connector's jars; the first call on a machine downloads them."""

    def build(folder: Path) -> None:
        log(f"downloading Debezium {DEBEZIUM} (40 MB, once)")
        resolve_jars(find_java(), folder, f"Debezium {DEBEZIUM}", _JARS)

    return build_once(cache_directory() / f"debezium-{DEBEZIUM}-{_CONNECT}", build) / "jars"


class Debezium:
    """A worker with one connector; a context manager that kills it. Killed, it goes on where its offsets are."""

    def __init__(self, folder: Path, bootstrap: str, database: Postgres, log: Callable[[str], None]) -> None:
        """Starts nothing yet.

        Args:
            folder: for its settings, offsets and log.
            log: gets a line when something will take long.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._ports = PortReservation()
        self._port = self._ports.reserve()
        worker = {
            "bootstrap.servers": bootstrap,
            "listeners": f"http://{HOST}:{self._port}",
            "key.converter": _JSON,
            "value.converter": _JSON,
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": folder / "offsets",
            "offset.flush.interval.ms": 1000,
        }
        (folder / "worker.properties").write_text("".join(f"{name}={value}\n" for name, value in worker.items()))
        connector = folder / "connector.json"
        connector.write_text(json.dumps({"name": PREFIX, "config": _connector(database)}))
        (folder / "log4j2.properties").write_text(_LOG_SETTINGS)
        jvm = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        main = ["-cp", f"{connect_jars(log)}/*", "org.apache.kafka.connect.cli.ConnectStandalone"]
        command = [str(find_java().java), *jvm, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", *main]
        command += [str(folder / "worker.properties"), str(connector)]
        self._child = ChildProcess("debezium", command, folder / "debezium.log", dict(os.environ))

    def start(self) -> None:
        """Returns when the connector's task runs. Raises `PermanentError` if it fails or takes too long."""
        self._child.start()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (state := self.state()) != "RUNNING":
            if self._child.pid is None or state == "FAILED" or time.monotonic() > deadline:
                raise PermanentError(f"Debezium is {state}: {self.log_tail()}")
            time.sleep(_POLL_S)

    def state(self) -> str:
        """Of the connector's task, as Connect names it; `none` while there is none."""
        connection = HTTPConnection(HOST, self._port, timeout=_ANSWER_TIMEOUT_S)
        try:
            connection.request("GET", f"/connectors/{PREFIX}/status")
            answer = connection.getresponse()
            tasks = json.load(answer)["tasks"] if answer.status == HTTPStatus.OK else []
        except (OSError, HTTPException):
            tasks = []
        finally:
            connection.close()
        return str(tasks[0]["state"]) if tasks else "none"

    def kill(self) -> None:
        """SIGKILL: events that it has sent since it last wrote its offsets are sent again after a start."""
        self._child.kill()

    def log_tail(self) -> str:
        """The end of its log."""
        return self._child.log_tail(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        self._ports.release()


def _connector(database: Postgres) -> dict[str, str]:
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "database.hostname": HOST,
        "database.port": database.port,
        "database.user": OWNER,
        "database.password": "none",
        "database.dbname": "postgres",
        "topic.prefix": PREFIX,
        "table.include.list": "public.*",
        "signal.data.collection": SIGNALS,
        "skipped.operations": "none",  # truncates, too
        "provide.transaction.metadata": "true",
        "topic.creation.enable": "true",
        "topic.creation.default.replication.factor": 1,
        "topic.creation.default.partitions": 2,
        "poll.interval.ms": 50,
        "status.update.interval.ms": 1000,
    }
    return {name: str(value) for name, value in config.items()}
