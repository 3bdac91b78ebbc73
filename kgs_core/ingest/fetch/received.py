"""Bytes that librdkafka's native client has received from each broker, by the statistics that it hands out."""

import ctypes as c
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

STATISTICS = "statistics.interval.ms"
_POINTER, _SIZE = c.c_void_p, c.c_size_t
_STATISTICS = c.CFUNCTYPE(c.c_int, _POINTER, _POINTER, _SIZE, _POINTER)
SIGNATURES: Mapping[str, tuple[Any, Sequence[Any]]] = {
    "rd_kafka_conf_set_stats_cb": (None, [_POINTER, _STATISTICS]),
}
"""librdkafka's functions -> type of their result, types of their arguments."""
_BROKERS, _TOPICS = b'"brokers":', b'"topics":'


class ReceivedBytes:
    """Counts what comes over the wire; to be kept for as long as the client, which calls it from `consume`."""

    def __init__(self, lib: Any, conf: int) -> None:
        self._totals: dict[str, int] = {}
        self._new: Counter[int] = Counter()
        self._call = _STATISTICS(self._note)
        lib.rd_kafka_conf_set_stats_cb(conf, self._call)

    def take(self) -> dict[int, int]:
        """Bytes from each broker, by its id, since the last call; those of the last seconds come with a later one."""
        found, self._new = dict(self._new), Counter()
        return found

    def _note(self, _client: int, text: int, size: int, _opaque: int) -> int:
        self.add(c.string_at(text, size))
        return 0

    def add(self, statistics: bytes) -> None:
        """Take in one set of statistics: JSON in which the brokers come before the topics, which are many."""
        begins = statistics.find(_BROKERS) + len(_BROKERS)
        ends = statistics.find(_TOPICS, begins)
        brokers, _ = json.JSONDecoder().raw_decode(statistics[begins:ends].decode().strip())
        for name, broker in brokers.items():
            total, before = broker["rxbytes"], self._totals.get(name, 0)
            self._totals[name] = total
            if broker["nodeid"] >= 0:  # else one that it was told of, and has learnt nothing from yet
                self._new[broker["nodeid"]] += total - before
