"""How large a group may be so that its Target is one record."""

import pytest

from kgs_core.errors import ProtocolError
from kgs_core.group.protocol import Target
from kgs_core.group.protocol.codec import MAX_BYTES, USUAL_PARTITIONS, decode, encode
from kgs_core.model import ConsumerId, TopicPartition


def a_target(partitions, name_length=40, per_topic=6):
    tps = [TopicPartition(f"{n // per_topic}".ljust(name_length, "-"), n % per_topic) for n in range(partitions)]
    readers = {tp: ConsumerId(1 + n % 1000) for n, tp in enumerate(tps)}
    speeds = {tp: 12_345.678901234567 + n for n, tp in enumerate(tps)}
    return Target("search", readers, (), speeds, 1e6, 0.0, "", (), (), 1)


@pytest.mark.parametrize(
    ("name_length", "per_topic", "thousands"),
    [(20, 6, 209), (40, 6, 178), (60, 6, 155), (100, 6, 123), (40, 1, 67), (40, 12, 212), (40, 50, 240)],
)
def test_how_many_partitions_of_a_group_fit_into_a_record(name_length, per_topic, thousands):
    """The table of docs/scale.md: `pytest tests/core/group/protocol/test_record_size.py`."""
    few, more = (len(encode(a_target(n, name_length, per_topic))[1]) for n in (9_000, 12_000))
    assert 9_000 + 3_000 * (MAX_BYTES - few) / (more - few) == pytest.approx(1000 * thousands, rel=0.01)


def test_a_target_of_as_many_partitions_as_usual_is_written_and_read_and_a_larger_one_is_refused_in_one_line():
    usual = a_target(USUAL_PARTITIONS)
    assert decode(*encode(usual)) == usual
    with pytest.raises(
        ProtocolError, match=r"Target of [\d,]+ bytes: a record holds 8,000,000, which is some 150,000 partitions of a"
    ):
        encode(a_target(USUAL_PARTITIONS, per_topic=1))
