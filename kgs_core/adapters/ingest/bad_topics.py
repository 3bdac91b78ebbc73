"""The topics of one consumer of which too many records are bad: logged when it begins and when it ends."""

import logging
from collections.abc import Iterable

from kgs_core.adapters.ingest.topic_state import TopicState
from kgs_core.consumer.bad_share import BadShare, bad_topics

_log = logging.getLogger(__name__)


class BadTopics:
    """Looks at the topics after every round.

    Attributes:
        shares: topic -> share of bad records (0 to 1), of the topics that are bad.
    """

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}

    def look(self, topics: Iterable[TopicState]) -> None:
        """See how it is now; topics of which nothing is owned, or nothing was read, are none of ours to judge."""
        states = {s.topic: s for s in topics if s.progress.owned and s.progress.bad_share is not None}
        found = {topic: _share(state) for topic, state in states.items()}
        before, self.shares = self.shares, bad_topics(found, self.shares)
        for topic in self.shares.keys() - before.keys():
            _log.warning(
                "too many bad records topic=%s share=%.3f max=%.3f dead_letters=%s: mend the rule or the producer",
                topic, *found[topic], states[topic].table.spec.dead_letters_table,
            )  # fmt: skip
        for topic in before.keys() - self.shares.keys():
            if topic in found:  # else another consumer has it now
                _log.info("few bad records again topic=%s share=%.3f max=%.3f", topic, *found[topic])


def _share(state: TopicState) -> BadShare:
    return BadShare(state.progress.bad_share or 0.0, state.table.spec.rule.max_bad_share_percent / 100)
