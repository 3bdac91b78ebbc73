"""The program with the members of `bench scale`: real memberships and real messages, and no data to read."""

import json
import socket
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Producer
from confluent_kafka import Message as ClientMessage

from bench.scale_load import scale_settings
from kgs_core.config import Settings
from kgs_core.group.membership.member import Facts, Identity, MembershipTiming
from kgs_core.group.membership.membership import Membership
from kgs_core.group.protocol import Heartbeat, Incarnation, Member, MemberAssignment, Process, Received, Report
from kgs_core.group.protocol.codec import encode
from kgs_core.group.topics.reader import GroupReader, Refusals
from kgs_core.group.topics.topics import GroupTopic, GroupTopics
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.kafka.client_config import admin_client
from kgs_core.model import ConsumerId

_POLL_S = 0.02
_POSITION = 1_000_000_000
_HASH = "0123456789abcdef"


@dataclass(slots=True)
class BenchMember:
    """One member.

    Attributes:
        is_sending: a message is on its way; the next one waits for its answer.
        due_s: when it is to be looked at, if nothing comes for it before.
    """

    membership: Membership
    handle: str
    is_sending: bool = False
    due_s: float = 0.0


class BenchMembers:
    """All members, in one thread; begun and asked after by requests from another."""

    def __init__(self, settings: Settings) -> None:
        """Opens every queue at its end."""
        self._topics = GroupTopics(settings, KafkaAdmin(admin_client(settings)))
        queues = self._topics.partitions(GroupTopic.ASSIGNMENTS)[1:]
        self._reader = GroupReader(self._topics, self._topics.admin.offsets(queues, "latest"), Refusals())
        (self._reports,) = self._topics.partitions(GroupTopic.REPORTS)
        self._producer = Producer(
            {**admin_client(settings), "acks": "all", "enable.idempotence": True, "compression.type": "lz4"}
        )
        membership = settings.membership
        timeout_s = settings.consumer.batch_timeout_s
        self._pace = MembershipTiming(membership.heartbeat_s, membership.suspect_after_s, timeout_s)
        self._lock = threading.Lock()
        self._members: dict[ConsumerId, BenchMember] = {}
        self._asked: list[tuple[ConsumerId, str]] = []
        self._ended: list[str] = []
        self._applied_s = 0.0
        self._sent_messages = self._sent_bytes = 0

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Start members, and say how all are."""
        with self._lock:
            self._asked += [(ConsumerId(consumer), handle) for consumer, handle in request.get("start", ())]
            return {
                "ended": self._ended,
                "applied_s": self._applied_s,
                "owned": sum(len(member.membership.owned) for member in self._members.values()),
                "messages": self._sent_messages,
                "bytes": self._sent_bytes,
                "cpu_s": time.process_time(),
            }

    def turn(self) -> None:
        """Take in what has come, act on it, and send what is due."""
        read = self._reader.take(_POLL_S)
        self._producer.poll(0)
        with self._lock:
            now = time.monotonic()
            for consumer, handle in self._asked:
                self._members[consumer] = BenchMember(self._join(consumer, handle, now), handle)
            self._asked = []
            queues: dict[ConsumerId, list[Received[MemberAssignment]]] = {}
            for received in (each.received for each in read):
                if isinstance(received.message, MemberAssignment):
                    found = Received(received.message, received.offset, received.timestamp_ms)
                    queues.setdefault(received.message.member.consumer, []).append(found)
            for consumer, member in list(self._members.items()):
                if consumer in queues:
                    self._act(member, queues[consumer], now)
                if consumer in queues or now >= member.due_s:
                    self._send(consumer, member, now)

    def _join(self, consumer: ConsumerId, handle: str, now: float) -> Membership:
        process = Process({"host": "bench", "pid": consumer, "run_id": handle})
        identity = Identity(Member(consumer, Incarnation(str(uuid.uuid4()))), process, "1.0.0", _HASH)
        return Membership.join(identity, self._pace, now)

    def _act(self, member: BenchMember, assignments: list[Received[MemberAssignment]], now: float) -> None:
        new = member.membership.received(assignments, now).listened(now)
        owned = new.owned
        if not new.is_acted_on:
            new = new.acted(new.decision, now)
        if new.owned != owned:
            self._applied_s = now
        pending = new.decision.pending
        member.membership = new.noted(Facts(positions=dict.fromkeys(new.owned, _POSITION), ready=pending))

    def _send(self, consumer: ConsumerId, member: BenchMember, now: float) -> None:
        if member.is_sending:
            return
        member.membership, message = member.membership.next_message(now)
        if message is None:
            member.due_s = now + member.membership.due_in(now)
            return
        key, value = encode(message)
        self._sent_messages += 1
        self._sent_bytes += len(key) + len(value or b"")
        member.is_sending = True

        def answered(error: KafkaError | None, _: ClientMessage) -> None:
            self._answered(consumer, member, message, now, error)

        self._producer.produce(self._reports.topic, value, key, self._reports.partition, on_delivery=answered)

    def _answered(
        self,
        consumer: ConsumerId,
        member: BenchMember,
        message: Report | Heartbeat,
        at: float,
        error: KafkaError | None,
    ) -> None:
        """In the thread that polls, outside of the lock."""
        with self._lock:
            member.is_sending, member.due_s = False, 0.0
            if error is None:
                member.membership = member.membership.appended(message, at)
            if member.membership.is_over:
                self._ended.append(member.handle)
                if self._members.get(consumer) is member:
                    del self._members[consumer]


def main(bootstrap_servers: str, socket_file: str) -> None:
    """Take requests until the other end is closed."""
    members = BenchMembers(scale_settings(bootstrap_servers))
    is_over = threading.Event()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(socket_file)
        connection.sendall(b"{}\n")

        def serve() -> None:
            with connection.makefile("rb") as lines:
                for line in lines:
                    connection.sendall(json.dumps(members.request(json.loads(line))).encode() + b"\n")
            is_over.set()

        threading.Thread(target=serve, name="requests", daemon=True).start()
        while not is_over.is_set():
            members.turn()


if __name__ == "__main__":
    main(*sys.argv[1:])
