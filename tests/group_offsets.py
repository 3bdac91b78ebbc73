"""The group's offsets in memory, for what opens topics without a Kafka."""

from kgs_core.lake.rule.first_start import GroupOffset


class MemoryOffsets:
    """What `GroupOffsets` would have committed, and commits."""

    def __init__(self):
        self.stored = {}

    def committed(self, tps):
        return {tp: self.stored[tp] for tp in tps if tp in self.stored}

    def close(self):
        """Nothing to close."""

    def report(self, topic_id, table, positions):
        self.stored |= {tp: GroupOffset(offset, topic_id, table) for tp, offset in positions.items()}
