"""A real Kafka cluster of one or more nodes on this machine, for tests and demonstrations; nothing to install."""

import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from filelock import Timeout

from kgs_core.embedded_kafka.class_archive import archive_options, build_archive
from kgs_core.embedded_kafka.jars import kafka_jars
from kgs_core.embedded_kafka.node import KafkaNode, Launcher
from kgs_core.errors import PermanentError
from kgs_core.spark.java import find_java
from kgs_core.system.closing import Closing
from kgs_core.system.files import write_whole
from kgs_core.system.locks import process_lock
from kgs_core.system.tcp_ports import HOST, PortReservation

_STOP_TIMEOUT_S = 20.0
_ARCHIVE_TIMEOUT_S = 120.0
_INTRODUCED_TIMEOUT_S = 60.0
_LIST_TIMEOUT_S = 2.0
_POLL_S = 0.02
_WATCH_S = 0.5
_LOG_SETTINGS = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""


@dataclass(frozen=True)
class _Cluster:
    """Memory of a directory of its cluster, from one start to the next."""

    cluster_id: str
    ports: Sequence[int]


class EmbeddedKafka(Closing):
    """A running cluster; a context manager that ends it. Its nodes are killed when this process ends in any way.

    Attributes:
        bootstrap_servers: `host:port` of every node, comma-separated; the same for the life of this object.
        nodes: in the order of their ids, which begin at 1.
        listeners: port of each further listener of each node, by name.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        nodes: Sequence[KafkaNode],
        listeners: Sequence[Mapping[str, int]],
        held: ExitStack,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.nodes = tuple(nodes)
        self.listeners = tuple(listeners)
        self._held = held

    @classmethod
    def start(
        cls,
        directory: Path,
        nodes: int = 1,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        advertised: Sequence[Mapping[str, int]] = (),
        log: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Starts a cluster and waits until every node serves.

        Args:
            directory: holds settings, logs and data. Started there again, the cluster has its data and, where free,
                its ports.
            nodes: each is broker and controller, so three can lose one.
            port: of the first node, the others are on the next ones; any free ones when None.
            settings: added to every node's settings, or in the place of ours; `{node}` in a value is the node's number.
                Several nodes must want no password.
            advertised: further listeners of each node, by name, each with the port that its clients are told (a proxy).
            log: gets a line when something will take long.

        Raises:
            PermanentError: no Java, no Kafka, a port in use, a directory in use or with another number of nodes, or a
                node that does not start (with the end of its log).
        """
        directory = directory.absolute()
        java = find_java()
        jars = kafka_jars(java, log)
        with ExitStack() as held:
            _lock(directory, held)
            reserved = PortReservation()
            held.callback(reserved.release)
            cluster = _claim(directory, nodes, port, reserved)
            options = archive_options(java, jars)
            launcher = Launcher(java.java, jars, _log_settings(directory), options)
            listeners = [{name: reserved.reserve() for name in each} for each in advertised]
            every = _settings(cluster.ports, [reserved.reserve() for _ in cluster.ports])
            for own, ports, told in zip(every, listeners, advertised, strict=False):
                _add_listeners(own, ports, told)
            started = [
                KafkaNode(number, directory / f"node-{number}", {**own, **_for_node(number, settings or {})}, launcher)
                for number, own in enumerate(every, 1)
            ]
            held.callback(_end, started)
            _format(started, cluster.cluster_id)
            for node in started:
                node.begin()
            for node in started:
                node.wait_ready()
            if nodes > 1:
                for one in cluster.ports:
                    _wait_introduced(one, nodes)
            servers = ",".join(f"{HOST}:{each}" for each in cluster.ports)
            return cls(servers, started, listeners, held.pop_all())

    def restart(self, node: KafkaNode) -> None:
        """Starts a node that was killed or stopped, with its data and port, and waits until it serves.

        Raises:
            PermanentError: it does not start (with the end of its log).
        """
        node.begin()
        node.wait_ready()

    def watch(self) -> NoReturn:
        """Looks after the nodes until it is interrupted, or one has ended by itself.

        Raises:
            PermanentError: a node ended by itself (with the end of its log).
        """
        while True:
            for node in self.nodes:
                node.check_running()
            time.sleep(_WATCH_S)

    def close(self) -> None:
        """Ends every node: SIGTERM, and SIGKILL for what is still there 20 s later. A second call does nothing."""
        self._held.close()


def prepare_kafka(log: Callable[[str], None]) -> Path:
    """The archive of the classes that a broker loads; the first call on a machine starts one, and may download Kafka.

    Raises:
        PermanentError: no Java, no Kafka, or the broker did not start.
    """
    java = find_java()
    jars = kafka_jars(java, log)

    def run(directory: Path, options: tuple[str, ...]) -> None:
        log("Kafka: starting once to see which classes it loads")
        launcher = Launcher(java.java, jars, _log_settings(directory), options)
        with ExitStack() as held:
            reserved = PortReservation()
            held.callback(reserved.release)
            (settings,) = _settings([reserved.reserve()], [reserved.reserve()])
            node = KafkaNode(1, directory / "node-1", settings, launcher)
            held.callback(node.kill)
            _format([node], _new_cluster_id())
            node.begin()
            node.wait_ready()
            node.end(_ARCHIVE_TIMEOUT_S)

    return build_archive(java, jars, run)


def _log_settings(directory: Path) -> Path:
    file = directory / "log4j2.properties"
    file.write_text(_LOG_SETTINGS)
    return file


def _lock(directory: Path, held: ExitStack) -> None:
    try:
        held.enter_context(process_lock(directory / ".lock", waits=False))
    except Timeout as error:
        raise PermanentError(f"{directory}: another Kafka runs in it: stop that or use another directory") from error


def _claim(directory: Path, nodes: int, port: int | None, reserved: PortReservation) -> _Cluster:
    """The cluster of this directory, old or new, with its brokers' ports reserved."""
    file = directory / "cluster.json"
    before = _Cluster(**json.loads(file.read_text())) if file.exists() else None
    if before is not None and len(before.ports) != nodes:
        raise PermanentError(
            f"{directory}: holds a cluster of {len(before.ports)} nodes, not {nodes}: "
            f"use --nodes {len(before.ports)} or another directory"
        )
    if port is not None:
        ports = [reserved.reserve_exactly(port + index) for index in range(nodes)]
    else:
        ports = [reserved.reserve(preferred) for preferred in (before.ports if before else [None] * nodes)]
    cluster = _Cluster(before.cluster_id if before else _new_cluster_id(), ports)
    write_whole(file, json.dumps(asdict(cluster)).encode())
    return cluster


def _new_cluster_id() -> str:
    # Sixteen bytes as Kafka writes its ids. The first is zero so that no id begins with a dash, like an option.
    return urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).decode().rstrip("=")


def _settings(ports: Sequence[int], controller_ports: Sequence[int]) -> list[dict[str, str]]:
    """Settings of each node, light on CPU and memory."""
    replicas = str(min(3, len(ports)))
    # A killed broker may not come back, nor be replaced, before that; one that gets no CPU for so long is shut out.
    session_ms, heartbeat_ms = ("3000", "500") if len(ports) > 1 else ("10000", "2000")
    voters = ",".join(f"{number}@{HOST}:{port}" for number, port in enumerate(controller_ports, 1))
    shared = {
        "process.roles": "broker,controller",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "auto.create.topics.enable": "false",
        "broker.heartbeat.interval.ms": heartbeat_ms,
        "broker.session.timeout.ms": session_ms,
        "delete.topic.enable": "true",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(8 * 2**20),
        "metadata.max.idle.interval.ms": "5000",  # writes every half second of no use take half of an idle node's CPU
        "num.io.threads": "4",
        "num.network.threads": "2",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": replicas,
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, len(ports))),
    }
    return [
        shared
        | {
            "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"CLIENT://{HOST}:{port}",
        }
        for port, controller_port in zip(ports, controller_ports, strict=True)
    ]


def _for_node(number: int, settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value.replace("{node}", str(number)) for name, value in settings.items()}


def _add_listeners(settings: dict[str, str], ports: Mapping[str, int], advertised: Mapping[str, int]) -> None:
    for name, port in ports.items():
        settings["listeners"] += f",{name}://{HOST}:{port}"
        settings["advertised.listeners"] += f",{name}://{HOST}:{advertised[name]}"
        settings["listener.security.protocol.map"] += f",{name}:PLAINTEXT"


def _format(nodes: Sequence[KafkaNode], cluster_id: str) -> None:
    running = [(node, process) for node in nodes if (process := node.begin_format(cluster_id)) is not None]
    try:
        for node, process in running:
            node.end_format(process)
    finally:
        for _, process in running:
            process.kill()  # interrupted, or too slow
            process.wait()


def _wait_introduced(port: int, nodes: int) -> None:
    """Waits until the node at `port`, which must want no password, lists all nodes.

    A client that asks one which does not yet forgets the others, with what it has asked them.
    """
    deadline = time.monotonic() + _INTRODUCED_TIMEOUT_S
    known = 0
    while known < nodes:
        if time.monotonic() > deadline:
            raise PermanentError(
                f"Kafka {HOST}:{port}: lists {known} of {nodes} nodes after {_INTRODUCED_TIMEOUT_S:.0f} s"
            )
        # A client that has been answered once may ask another node
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        with suppress(KafkaException):
            known = len(client.list_topics(timeout=_LIST_TIMEOUT_S).brokers)
        time.sleep(_POLL_S)


def _end(nodes: Sequence[KafkaNode]) -> None:
    for node in nodes:
        node.terminate()
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    for node in nodes:
        node.end(max(0.0, deadline - time.monotonic()))
