"""One topic as Kafka describes it: its id, its partitions, who leads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kgs_core.errors import UnsafeError
from kgs_core.kafka.errors import NEWER
from kgs_core.model import TopicId

_NO_ID = "A" * 22  # sixteen zero bytes: what librdkafka makes of a broker that knows no ids


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic as it is now.

    Attributes:
        partitions: how many; their numbers begin at 0.
        leaders: broker that leads each partition; those without one are absent.
        zones: `broker.rack` of each partition's preferred leader; those without one are absent.
    """

    topic_id: TopicId
    partitions: int
    leaders: Mapping[int, int] = field(default_factory=dict, compare=False)
    zones: Mapping[int, str] = field(default_factory=dict, compare=False)


def described(where: str, topic: str, answer: Any) -> TopicDescription:
    """The client's description of a topic as ours; an UnsafeError where it has no id."""
    partitions = answer.partitions
    return TopicDescription(
        known_id(where, topic, answer.topic_id),
        len(partitions),
        {p.id: p.leader.id for p in partitions if p.leader is not None and p.leader.id >= 0},
        {p.id: p.replicas[0].rack for p in partitions if p.replicas and p.replicas[0].rack},
    )


def known_id(where: str, topic: str, theirs: object) -> TopicId:
    """The id of a topic; an UnsafeError where it has none."""
    found = topic_id_of(theirs)
    if found == _NO_ID:
        raise UnsafeError(
            f"Kafka {where}: topic '{topic}' has no id, so that one made again under its name would be taken for it: "
            f"{NEWER} (with ZooKeeper: inter.broker.protocol.version, too)"
        )
    return found


def topic_id_of(theirs: object) -> TopicId:
    """Kafka writes its ids in URL-safe base64; librdkafka in the other, whose slash would split our application ids."""
    return TopicId(str(theirs).rstrip("=").replace("+", "-").replace("/", "_"))


def message_limit_problems(topic: str, config: Mapping[str, str], wanted: int) -> list[str]:
    """What is wrong with the limit of a topic's records; somebody else may have made it, with Kafka's default of 1 MB.

    With a lower one a group works until it has grown, and then a Target or a report is refused in the middle of it.
    """
    name = "max.message.bytes"
    if int(config.get(name, 0)) >= wanted:
        return []
    return [
        f"topic {topic}: {name} is {config.get(name)}, must be at least {wanted}: `kafka-configs.sh --alter --topic "
        f"{topic} --add-config {name}={wanted}`"
    ]
