"""Three real brokers, a proxy between each and every class of its clients, and outages of one broker.

A client of a class knows the class's proxies only, because brokers advertise those on the class's listener. So the
network can fail for one class while the others, and the brokers among each other, work.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from bench.toxiproxy import DOWN, UP, Proxy, Toxiproxy
from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.errors import TransientError
from kgs_core.model import TopicPartition
from kgs_core.system.tcp_ports import HOST, PortReservation

CLASSES = ("consumers", "controller", "tools")
SETTINGS = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "broker.session.timeout.ms": "6000",  # on a busy machine a shorter one shuts out those that are well
    "auto.leader.rebalance.enable": "false",  # leaders stay where a test puts them
}
FLAP_S = 10.0
SLOW_MS = 5000
_RESET_MS = 500
_NODES = 3
_ANSWER_TIMEOUT_S = 5.0
_LEAD_TIMEOUT_S = 30.0
_POLL_S = 0.1
_PREFERRED = 0
Undo = Callable[[], None]


class ThreeBrokers:
    """The cluster; a context manager that ends it. Nodes go by their numbers, which begin at 1.

    Attributes:
        kafka: the brokers. Their own addresses go through no proxy: they are for a test's producers and questions.
    """

    def __init__(
        self,
        program: Path | None,
        folder: Path,
        classes: Sequence[str] = CLASSES,
        nodes: int = _NODES,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            program: Toxiproxy's; None: no proxies, and no outages of the network.
            folder: holds data and logs.
            classes: of clients.
            nodes: brokers.
            settings: of each broker, besides those of replication.
        """
        self.kafka: EmbeddedKafka
        self._program = program
        self._folder = folder
        self._classes = tuple(classes) if program is not None else ()
        self._count = nodes
        self._settings = {**(SETTINGS if nodes >= _NODES else {}), **(settings or {})}
        self._proxies: dict[tuple[int, str], Proxy] = {}
        self._held = ExitStack()
        self._undo: dict[int, list[Undo]] = {}

    def __enter__(self) -> Self:
        with ExitStack() as held:
            reserved = PortReservation()
            held.callback(reserved.release)
            ports = [{_listener(each): reserved.reserve() for each in self._classes} for _ in range(self._count)]
            self.kafka = held.enter_context(
                EmbeddedKafka.start(self._folder / "kafka", self._count, settings=self._settings, advertised=ports)
            )
            held.callback(self._kill_all)  # stopped in order, the last two wait for each other, and data end here
            if self._program is not None:
                toxiproxy = held.enter_context(Toxiproxy(self._program, self._folder))
                for node, (told, own) in enumerate(zip(ports, self.kafka.listeners, strict=True), 1):
                    for each in self._classes:
                        name = _listener(each)
                        self._proxies[node, each] = toxiproxy.proxy(f"{each}-{node}", told[name], own[name])
            self._held = held.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held.close()

    @property
    def nodes(self) -> Sequence[int]:
        """Numbers of all nodes."""
        return range(1, self._count + 1)

    def bootstrap(self, client_class: str) -> str:
        """`bootstrap.servers` of a class: its proxies, or the brokers where it has none."""
        if client_class not in self._classes:
            return self.kafka.bootstrap_servers
        return ",".join(f"{HOST}:{self.proxy(node, client_class).port}" for node in self.nodes)

    def proxy(self, node: int, client_class: str) -> Proxy:
        """The way of a class to a node."""
        return self._proxies[node, client_class]

    def proxies(self, node: int, classes: Collection[str] = ()) -> list[Proxy]:
        """The ways of these classes to a node; of all when none is named."""
        return [self._proxies[node, each] for each in classes or self._classes]

    def inflict(self, outage: str, node: int, classes: Collection[str] = ()) -> None:
        """Begin one of `OUTAGES`, for these classes of clients where it is one of the network; `heal` ends it."""
        self._undo.setdefault(node, []).append(OUTAGES[outage](self, node, classes))

    def heal(self, *nodes: int) -> None:
        """End all outages of these nodes, or of all; returns when the brokers serve."""
        for node in nodes or tuple(self._undo):
            for undo in reversed(self._undo.pop(node, [])):
                undo()

    def lead(self, node: int, topics: Collection[str] | None = None) -> None:
        """Have a node, which must be in sync, lead every partition of these topics, or of all, the internal ones too.

        Raises:
            TransientError: some have another leader after half a minute.
        """
        self.arrange(lambda tp: node if topics is None or tp.topic in topics else None)

    def arrange(self, leader_of: Callable[[TopicPartition], int | None]) -> None:
        """Have each partition led by the node that it is given; None leaves it where it is.

        Raises:
            TransientError: some have another leader after half a minute.
        """
        deadline = time.monotonic() + _LEAD_TIMEOUT_S
        while True:
            found = self.leaders()
            wanted = {tp: node for tp in found if (node := leader_of(tp)) is not None and found[tp] != node}
            if not wanted:
                return
            if time.monotonic() > deadline:
                raise TransientError(f"not led by the node that shall: {', '.join(map(str, list(wanted)[:5]))}")
            with suppress(KafkaError):
                self._prefer(wanted)
            time.sleep(_POLL_S)

    def leaders(self) -> dict[TopicPartition, int]:
        """Leader of every partition, as a node knows it that answers; -1 where there is none.

        Raises:
            TransientError: no node answers.
        """
        for node in self._serving():
            # A client that has been answered once may ask another node, which may be the one that is out
            client = AdminClient({"bootstrap.servers": self._address(node), "log_level": 0})
            with suppress(KafkaException):
                topics = client.list_topics(timeout=_ANSWER_TIMEOUT_S).topics
                return {TopicPartition(t, p): each.leader for t in topics for p, each in topics[t].partitions.items()}
        raise TransientError("no broker answers")

    def _prefer(self, leaders: Mapping[TopicPartition, int]) -> None:
        """Make each node the first of its partition's replicas, and elect it."""
        servers = [self._address(each) for each in self._serving()]
        client = KafkaAdminClient(bootstrap_servers=servers, request_timeout_ms=int(_ANSWER_TIMEOUT_S * 1000))
        try:
            client.alter_partition_reassignments(
                {
                    ClientTopicPartition(*tp): [node, *(each for each in self.nodes if each != node)]
                    for tp, node in leaders.items()
                }
            )
            topics = {tp.topic: [each.partition for each in leaders if each.topic == tp.topic] for tp in leaders}
            client.elect_leaders(_PREFERRED, topics, raise_errors=False)
        finally:
            client.close()

    def _address(self, node: int) -> str:
        return self.kafka.bootstrap_servers.split(",")[node - 1]

    def _serving(self) -> list[int]:
        """Nodes without an outage first."""
        return sorted(self.nodes, key=lambda node: bool(self._undo.get(node)))

    def _kill_all(self) -> None:
        for node in self.kafka.nodes:
            node.kill()

    def kill(self, node: int, classes: Collection[str] = ()) -> Undo:
        """SIGKILL. Proxies refuse then, as the port of a process that is gone does."""
        del classes
        broker = self.kafka.nodes[node - 1]
        broker.kill()
        accept = self.refuse(node)

        def restart() -> None:
            self.kafka.restart(broker)
            accept()

        return restart

    def freeze(self, node: int, classes: Collection[str] = ()) -> Undo:
        """SIGSTOP: connections stay open and new ones are accepted by the kernel, and nothing is answered."""
        del classes
        pid = self.kafka.nodes[node - 1].pid
        if pid is None:
            raise TransientError(f"node {node}: does not run")
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    def flap(self, node: int, classes: Collection[str] = ()) -> Undo:
        """Black for 10 s, well for 10 s, and so on."""
        proxies, is_over = self.proxies(node, classes), threading.Event()

        def run() -> None:
            with suppress(OSError):  # the proxies end with the rig
                while not is_over.is_set():
                    for proxy in proxies:
                        proxy.black_hole()
                    is_over.wait(FLAP_S)
                    for proxy in proxies:
                        proxy.clear()
                    is_over.wait(FLAP_S)

        thread = threading.Thread(target=run, name=f"flap-{node}", daemon=True)
        thread.start()

        def stop() -> None:
            is_over.set()
            thread.join()

        return stop

    def refuse(self, node: int, classes: Collection[str] = ()) -> Undo:
        """No connection is accepted, and those that are there end."""
        proxies = self.proxies(node, classes)
        for proxy in proxies:
            proxy.enable(False)  # noqa: FBT003

        def accept() -> None:
            for proxy in proxies:
                proxy.enable()

        return accept

    def spoil(self, node: int, classes: Collection[str], kind: str, *streams: str, **attributes: int) -> Undo:
        """A toxic in each of these directions."""
        proxies = self.proxies(node, classes)
        for proxy in proxies:
            for stream in streams:
                proxy.add(kind, stream, **attributes)

        def clear() -> None:
            for proxy in proxies:
                proxy.clear()

        return clear


def _listener(client_class: str) -> str:
    return f"OF_{client_class.upper()}"  # CONTROLLER is one already


Outage = Callable[[ThreeBrokers, int, Collection[str]], Undo]
OUTAGES: Mapping[str, Outage] = {
    "killed": ThreeBrokers.kill,
    "frozen": ThreeBrokers.freeze,
    "refused": ThreeBrokers.refuse,
    "black": lambda rig, node, classes: rig.spoil(node, classes, "timeout", UP, DOWN, timeout=0),
    "black in": lambda rig, node, classes: rig.spoil(node, classes, "timeout", UP, timeout=0),
    "black out": lambda rig, node, classes: rig.spoil(node, classes, "timeout", DOWN, timeout=0),
    "slow": lambda rig, node, classes: rig.spoil(node, classes, "latency", DOWN, latency=SLOW_MS),
    "reset": lambda rig, node, classes: rig.spoil(node, classes, "reset_peer", DOWN, timeout=_RESET_MS),
    "flapping": ThreeBrokers.flap,
}
"""What can happen to a node: the first two to the process, the others to the network between it and its clients."""
