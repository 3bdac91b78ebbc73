"""The producing process: sends what is due in step with the clock and keeps a tally of what the brokers took."""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kgs_core.errors import TransientError
from kgs_core.kafka.errors import port_error
from kgs_core.system.files import replacement
from kgs_core.system.shutdown import StopFlag

_LOG = logging.getLogger(__name__)

DueRecords = Callable[[float, float], Iterable[tuple[str, bytes, bytes]]]
"""Topic, key and value of the records due in [from_s, to_s), seconds since the start, in order."""

_DEFAULTS: Mapping[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 20,
    "queue.buffering.max.kbytes": 65_536,
}

_TICK_S = 0.05
_LONGEST_TICK_S = 1.0
_CATCH_UP = 2.0
_TALLY_EVERY_S = 1.0
_FULL_QUEUE_WAIT_S = 0.1


def next_until(sent_until_s: float, now_s: float, elapsed_s: float) -> float:
    """End of the next slice to send, seconds since the start; the last one ended at `sent_until_s`, `elapsed_s` ago.

    It is `now_s`, but after a hold-up (a broker gone, a slow machine) at most twice the pace: all at once the missed
    records would be a burst that the load's own shape does not have.
    """
    return min(now_s, sent_until_s + _CATCH_UP * min(max(elapsed_s, _TICK_S), _LONGEST_TICK_S))


class Tally:
    """Tally of the records; counts only what the brokers acknowledged as delivered."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, int]] = Counter()
        self._bytes: Counter[str] = Counter()
        self.failed = 0
        self.replayed_s = 0.0
        self.behind_s = 0.0

    @property
    def delivered(self) -> int:
        """Records acknowledged, of all topics."""
        return self._records.total()

    def count(self, error: KafkaError | None, message: Message) -> None:
        """Takes the outcome of one record: the delivery callback."""
        topic, partition = message.topic(), message.partition()
        if error is not None or topic is None or partition is None:
            self.failed += 1
            if self.failed == 1:  # one line, not one per record
                _LOG.warning("flight producer: record for %s not delivered: %s", topic, error)
            return
        self._records[topic, partition] += 1
        self._bytes[topic] += len(message)

    def report(self, *, finished: bool) -> dict[str, Any]:
        """The tally as a JSON object.

        Keys: `finished`; `records` and `bytes` (values, uncompressed) by topic; `partitions`: records by
        "topic:partition"; `failed`: records given up; `replayed_s` and `behind_s`: seconds of the replay that were sent
        and by how much they are late.
        """
        topics: Counter[str] = Counter()
        for (topic, _), records in self._records.items():
            topics[topic] += records
        return {
            "finished": finished,
            "records": dict(sorted(topics.items())),
            "bytes": dict(sorted(self._bytes.items())),
            "partitions": {f"{topic}:{number}": n for (topic, number), n in sorted(self._records.items())},
            "failed": self.failed,
            "replayed_s": round(self.replayed_s, 3),
            "behind_s": round(self.behind_s, 3),
        }


class FlightProducer:
    """One producer over one cluster; `run` is called once."""

    def __init__(self, config: Mapping[str, str | int | float | bool], tally_file: Path | None = None) -> None:
        """`config` overrides what is set here for safety and speed; `tally_file` is rewritten every second.

        Raises:
            PermanentError: the client refuses the settings.
        """
        self.tally = Tally()
        self._tally_file = tally_file
        self._tally_due_s = 0.0
        self._where = str(config.get("bootstrap.servers", "without bootstrap.servers"))
        settings = {**_DEFAULTS, **config, "on_delivery": self.tally.count}
        try:
            # The client logs and outlasts every error but a fatal one, and raises that from the next call.
            self._producer = Producer(settings, logger=_LOG)
        except KafkaException as error:
            raise port_error(self._where, "client settings", error.args[0]) from error

    def run(self, due: DueRecords, stop: StopFlag, seconds: float | None = None, flush_s: float = 60.0) -> Tally:
        """Send what is due until `seconds` of the replay are sent or `stop` is set; wait `flush_s` for the answers.

        Raises:
            PortError: the client failed for good.
            TransientError: records were still unanswered after `flush_s`.
        """
        try:
            self._keep_pace(due, stop, seconds)
            left = self._flush(flush_s)
        except KafkaException as error:
            self._save_tally(finished=False)
            raise port_error(self._where, "produce", error.args[0]) from error
        self._save_tally(finished=left == 0)
        if left:
            raise TransientError(f"flight producer: {left} records unanswered after {flush_s:g} s: check the brokers")
        return self.tally

    def _keep_pace(self, due: DueRecords, stop: StopFlag, seconds: float | None) -> None:
        tally = self.tally
        started = last = time.monotonic()
        while not stop.is_set and (seconds is None or tally.replayed_s < seconds):
            now = time.monotonic()
            now_s = now - started if seconds is None else min(now - started, seconds)
            until_s = next_until(tally.replayed_s, now_s, now - last)
            last = now
            for record in due(tally.replayed_s, until_s):
                if not self._send(record, stop):
                    return
            tally.replayed_s, tally.behind_s = until_s, now_s - until_s
            self._serve(0)
            time.sleep(max(0.0, now + _TICK_S - time.monotonic()))

    def _send(self, record: tuple[str, bytes, bytes], stop: StopFlag) -> bool:
        """Queues one record, waiting while the queue is full; False when stopped meanwhile."""
        topic, key, value = record[:3]
        while True:
            try:
                # No timestamp: Kafka's is the sending time. With the event time of 2013 retention would delete it.
                self._producer.produce(topic, value, key)
            except BufferError:
                if stop.is_set:
                    return False
                self._serve(_FULL_QUEUE_WAIT_S)
            else:
                return True

    def _serve(self, wait_s: float) -> None:
        self._producer.poll(wait_s)
        if time.monotonic() >= self._tally_due_s:
            self._save_tally(finished=False)

    def _flush(self, flush_s: float) -> int:
        until = time.monotonic() + flush_s
        while (left := self._producer.flush(_TALLY_EVERY_S)) and time.monotonic() < until:
            self._save_tally(finished=False)
        return int(left)

    def _save_tally(self, *, finished: bool) -> None:
        self._tally_due_s = time.monotonic() + _TALLY_EVERY_S
        if self._tally_file is None:
            return
        with replacement(self._tally_file) as draft:
            draft.write_text(json.dumps(self.tally.report(finished=finished)) + "\n")
