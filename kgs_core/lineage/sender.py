"""Sender of a consumer's lineage: a thread of its own, so that no backend ever holds up or fails a consumer.

Whoever calls only puts a word into a bounded queue. Where that is full, or the backend is away, slow or refuses, events
are lost: counted, and logged once until one arrives again. Tables wait for the next round instead: they are told all
together, at most every `NEWS_S`; where that was lost, all of them again after `AGAIN_S`.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, one_line
from kgs_core.extras import require
from kgs_core.lineage.events import LineageTable, RunNews, run_event

MOST_WAITING = 32
NEWS_S = 5.0
AGAIN_S = 60.0
LAST_WORD_S = 2.0
DEFAULT_NAMESPACE = "kgs"
TURNED_ON_BY = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
"""Variables of OpenLineage's client that say where to: with one of them, consumers tell."""
_log = logging.getLogger(__name__)


class ConsumerLineage:
    """What one life of a consumer reads and writes, told to OpenLineage; nothing unless one of `TURNED_ON_BY` is set.

    `lost`: events that did not arrive.
    """

    def __init__(self, settings: Settings, run_id: str) -> None:
        """Nothing is sent yet, and nobody is asked."""
        self.lost = 0
        self._settings = settings
        self._is_on = any(os.environ.get(name) for name in TURNED_ON_BY)
        self._run_id = run_id
        self._client: Any = None  # the thread's own
        self._queue: queue.Queue[RunNews | None] = queue.Queue(MOST_WAITING)
        self._told: dict[tuple[str, str], LineageTable] = {}
        self._news: dict[tuple[str, str], LineageTable] = {}
        self._news_at = float("-inf")
        self._has_ended = False
        self._has_warned = False
        self._are_tables_lost = False  # which the thread says, and the next round mends

    @contextmanager
    def running(self) -> Iterator[None]:
        """The run: START before the block, COMPLETE or FAIL after it, for which it waits `LAST_WORD_S` at most."""
        if not self._is_on:
            yield
            return
        thread = threading.Thread(target=self._send_all, name="lineage", daemon=True)
        thread.start()
        self._put(RunNews("START", time.time()))
        try:
            yield
        except BaseException as e:
            self.failed(one_line(e))
            raise
        finally:
            self._end(RunNews("COMPLETE", time.time(), tuple(self._told.values())))
            self._put(None)
            thread.join(LAST_WORD_S)
            waiting = sum(news is not None for news in list(self._queue.queue))
            lost = self.lost + waiting + thread.is_alive()  # one of them is under way
            if lost:
                _log.warning("lineage: %d events of this consumer are lost", lost)

    def failed(self, why: str) -> None:
        """The run fails; may be called from any thread, and waits for nothing."""
        if self._is_on:
            self._end(RunNews("FAIL", time.time(), tuple(self._told.values()), why))

    def saw(self, tables: Iterable[tuple[str, str, Any]]) -> None:
        """Note what is open now; tables that are new here, or have other columns, are told.

        `tables`: topic, path of a table that it fills, the table's columns.
        """
        if not self._is_on:
            return
        for topic, table, schema in tables:
            known = self._told.get((topic, table))
            if known is None or (known.schema is not schema and not known.schema.equals(schema)):
                self._told = {**self._told, (topic, table): LineageTable(topic, table, schema)}
                self._news[topic, table] = self._told[topic, table]
        now = time.monotonic()
        if self._are_tables_lost and now >= self._news_at + AGAIN_S:
            self._are_tables_lost = False
            self._news = dict(self._told)
        if not self._news or now < self._news_at + NEWS_S:
            return
        self._news_at = now
        try:
            self._queue.put_nowait(RunNews("RUNNING", time.time(), tuple(self._news.values())))
        except queue.Full:  # they are told later
            return
        self._news = {}

    def _end(self, news: RunNews) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._put(news)

    def _put(self, news: RunNews | None) -> None:
        try:
            self._queue.put_nowait(news)
        except queue.Full:
            self.lost += news is not None

    def _send_all(self) -> None:
        namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
        unusable = ""
        while (news := self._queue.get()) is not None:
            if unusable:
                self.lost += 1
                continue
            try:
                self._connected().emit(run_event(news, self._settings, namespace, self._run_id))
            except ConfigError as e:
                unusable = str(e)
                self._note_lost(unusable)
            except Exception as e:  # noqa: BLE001 - transports raise what they like, and a consumer must not mind
                self._are_tables_lost = self._are_tables_lost or news.kind in ("START", "RUNNING")
                self._note_lost(one_line(e))
            else:
                if self._has_warned:
                    _log.info("lineage: events arrive again, %d are lost", self.lost)
                self._has_warned = False

    def _connected(self) -> Any:
        if self._client is None:
            self._client = open_openlineage()
        return self._client

    def _note_lost(self, why: str) -> None:
        self.lost += 1
        if not self._has_warned:
            self._has_warned = True
            _log.warning("lineage: events are lost: %s", why)


def open_openlineage() -> Any:
    """OpenLineage's client, as its own environment and file say; a ConfigError where it is not installed."""
    require("lineage", "lineage (OPENLINEAGE_URL or OPENLINEAGE_CONFIG is set)")
    from openlineage.client import OpenLineageClient

    return OpenLineageClient()
