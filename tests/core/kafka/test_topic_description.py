"""What is said of a topic that was made beforehand."""

import pytest

from kgs_core.kafka.topic_description import message_limit_problems

TOO_LOW = (
    "topic kgs.g.x: max.message.bytes is 1048588, must be at least 8388608: `kafka-configs.sh --alter --topic "
    "kgs.g.x --add-config max.message.bytes=8388608`"
)


@pytest.mark.parametrize(("limit", "told"), [("1048588", [TOO_LOW]), ("8388608", []), ("20971520", [])])
def test_too_low_a_limit_is_named_with_its_value_and_the_command(limit, told):
    assert message_limit_problems("kgs.g.x", {"max.message.bytes": limit}, 8_388_608) == told
