"""Share of bad records of a topic: too great is a state that begins once and ends once. Pure.

It begins above half of the last 1,000 records or so, and ends at a quarter. One limit for both
would not do: the share is taken anew with every batch, so that of a topic near the limit lies now above it, now below,
and somebody would be told each time. There is no least number of records: a topic of which three are there, all bad,
is as wrong as one with a million, and who has just written its rule learns it from these three.
"""

from collections.abc import Collection, Mapping

BEGINS_ABOVE = 0.5
ENDS_AT = 0.25


def bad_topics(found: Mapping[str, float], before: Collection[str]) -> dict[str, float]:
    """Of topics, each with its share of bad records (0 to 1), those that are bad.

    Args:
        found: topics of ours of which something was read.
        before: which were bad.
    """
    return {topic: share for topic, share in found.items() if share > (ENDS_AT if topic in before else BEGINS_ABOVE)}
