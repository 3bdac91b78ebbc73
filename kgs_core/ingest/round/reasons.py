"""The words for why a partition stands still: what was found, and the way out."""

from collections.abc import Iterable

from kgs_core.model import TopicId, TopicPartition

UNANSWERED = "Kafka did not say which topic this is"
NO_LEADER = "Kafka does not say where the partition ends: it has no leader that answers"
UNKNOWN_TOPIC = "Kafka does not know the topic at this moment: it is asked again"
AHEAD = "another consumer has written these offsets: does a second one read this partition?"


def recreated(topic: str, earlier: Iterable[TopicId], now: TopicId | None) -> str:
    """Of a topic that is no longer the one the table was filled from."""
    ids = ", ".join(earlier)
    if now is None:
        return (
            f"topic {topic}: the table was filled from topic id {ids}, Kafka now has no such topic: if it was deleted, "
            "a group lets go of it within a minute; if a broker does not know it yet, reading continues by itself"
        )
    return (
        f"topic {topic}: the table was filled from topic id {ids}, Kafka now has {now}: it was deleted and created "
        f"again; to continue with the new one: kgs accept-topic {topic} --yes; after a move to another cluster: "
        f"kgs adopt --topic {topic}"
    )


def deleted(tp: TopicPartition, position: int, first: int) -> str:
    """Of offsets that retention has taken before they were read."""
    return (
        f"offsets {position} to {first - 1} were deleted before being read; to continue without them: "
        f"kgs accept-loss {tp}={position}-{first} --yes"
    )


def truncated(position: int, end: int) -> str:
    """Of a log that is shorter than the table."""
    return f"log truncated: the table has offsets to {position - 1}, the log ends at {end}: restore the log"
