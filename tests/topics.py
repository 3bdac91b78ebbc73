"""Changes to topics of a broker that kgs itself never makes."""

from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewPartitions


def delete_topic(admin, name):
    """Delete a topic and wait until it is unknown; False if there was none."""
    what = f"delete topic '{name}'"
    error = admin._errors(what, lambda c, s: c.delete_topics([name], request_timeout=s)).get(name)
    if error is not None and error.name() != "UNKNOWN_TOPIC_OR_PART":
        raise admin._error(what, error)
    admin._settle(what, lambda: not admin.describe([name]))
    return error is None


def create_partitions(admin, name, total):
    """Raise a topic's number of partitions to `total` and wait until all are served."""
    what = f"raise topic '{name}' to {total} partitions"
    more = [NewPartitions(name, total)]
    for error in admin._errors(what, lambda c, s: c.create_partitions(more, request_timeout=s)).values():
        raise admin._error(what, error)
    admin._settle(what, lambda: admin._is_served(name, total), total)


def delete_records(admin, before):
    """Delete the records below an offset in each partition; the earliest offset then left in each."""
    wanted, what = [TopicPartition(*tp, offset) for tp, offset in before.items()], "delete records"
    answers = admin._ask(what, lambda c, s: c.delete_records(wanted, request_timeout=s), once=True)
    return {tp: int(answer.low_watermark) for tp, answer in admin._by_partition(what, answers).items()}
