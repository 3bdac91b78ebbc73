"""Bytes that a consumer has read within its zone, and across its border."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from kgs_core.errors import PortError
from kgs_core.group.protocol import WorkDone

ASK_EVERY_S = 60.0
_log = logging.getLogger(__name__)


class ZoneBytes:
    """Sums over the life of a consumer. Brokers without a rack are left out: their zone is unknown."""

    def __init__(self, zone: str | None, racks: Callable[[], Mapping[int, str | None]]) -> None:
        """`racks` asks Kafka for each broker's rack."""
        self._zone = zone
        self._ask = racks
        self._racks: Mapping[int, str | None] = {}
        self._due = float("-inf")
        self._unplaced: Counter[int] = Counter()
        self._near: Counter[bool] = Counter()

    def add(self, received: Mapping[int, int]) -> None:
        """More bytes, by the broker that they came from; one that is not known yet is asked for, once a minute."""
        self._unplaced.update(received)
        if self._unplaced.keys() - self._racks.keys() and time.monotonic() >= self._due:
            self._due = time.monotonic() + ASK_EVERY_S
            try:
                self._racks = self._ask()
            except PortError as e:
                _log.info("bytes across zones are counted later: %s", e)
        for broker in self._unplaced.keys() & self._racks.keys():
            count, rack = self._unplaced.pop(broker), self._racks[broker]
            if rack is not None:
                self._near[rack == self._zone] += count

    def added_to(self, work: WorkDone) -> WorkDone:
        """`work` with these sums, as far as they are known."""
        return (
            replace(work, same_zone_bytes=self._near[True], cross_zone_bytes=self._near[False]) if self._near else work
        )
