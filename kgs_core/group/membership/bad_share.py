"""Share of bad records of a topic: too great is a state that begins once and ends once. Pure.

It begins above `max_bad_share_percent` of the last 1,000 records or so, and ends at half of that. One limit for both
would not do: the share is taken anew with every batch, so that of a topic near the limit lies now above it, now below,
and somebody would be told each time. There is no least number of records: a topic of which three are there, all bad,
is as wrong as one with a million, and who has just written its rule learns it from these three.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

END_FACTOR = 0.5


class BadShare(NamedTuple):
    """Of one topic: its share of bad records, and the most that its rule takes for usual; both from 0 to 1."""

    share: float
    limit: float


def is_bad(found: BadShare, *, was_bad: bool) -> bool:
    """Whether it counts as bad now; above 100 % nothing ever is."""
    return found.share > (found.limit * END_FACTOR if was_bad else found.limit)


def bad_topics(found: Mapping[str, BadShare], before: Collection[str]) -> dict[str, float]:
    """The topics that are bad, with their shares, of those found: ours, of which something was read."""
    return {topic: each.share for topic, each in found.items() if is_bad(each, was_bad=topic in before)}
