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
from contextlib import contextmanager, suppress
from typing import Any

from kgs_core.config import Settings
from kgs_core.errors import ConfigError, PermanentError, one_line
from kgs_core.extras import require
from kgs_core.lineage.events import LineageTable, RunNews, run_event
from kgs_core.system.secret_files import SecretFiles, with_secrets

MOST_WAITING = 32
NEWS_S = 5.0
AGAIN_S = 60.0
LAST_WORD_S = 2.0
DEFAULT_NAMESPACE = "kgs"
_log = logging.getLogger(__name__)


class ConsumerLineage:
    """What one life of a consumer reads and writes, told to OpenLineage; nothing where no section `lineage` is.

    `lost`: events that did not arrive.
    """

    def __init__(self, settings: Settings, run_id: str) -> None:
        """Nothing is sent yet, and nobody is asked."""
        self.lost = 0
        self._settings = settings
        self._is_on = settings.lineage is not None
        self._run_id = run_id
        self._client: Any = None  # the thread's own, as are its files
        self._files = SecretFiles({})
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
        if self._client is None or self._files.have_changed():
            self._client, self._files = None, SecretFiles(self._secrets)
            self._client = open_openlineage(self._settings)
        return self._client

    def _note_lost(self, why: str) -> None:
        self.lost += 1
        if not self._has_warned:
            self._has_warned = True
            with suppress(PermanentError):  # a file that cannot be read has given no token
                for token in with_secrets("lineage", self._secrets).values():
                    why = why.replace(token, "...")
            _log.warning("lineage: events are lost: %s", why)

    @property
    def _secrets(self) -> dict[str, str]:
        return self._settings.lineage.secrets if self._settings.lineage is not None else {}


def open_openlineage(settings: Settings) -> Any:
    """OpenLineage's client: to the address of the settings, or as its own environment and file say.

    Raises:
        ConfigError: it is not installed, or nothing says where to.
        PermanentError: the file that the token stands in cannot be read.
    """
    require("lineage", "section lineage")
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

    section = settings.lineage
    if section is not None and section.url is not None:
        token = with_secrets("lineage", section.secrets).get("token")
        auth = ApiKeyTokenProvider({"api_key": token}) if token else TokenProvider({})
        retry = {"total": 0}  # what is lost is lost; the queue must go on
        return OpenLineageClient(
            transport=HttpTransport(HttpConfig(section.url, timeout=section.timeout_s, auth=auth, retry=retry))
        )
    client = OpenLineageClient()
    if client.transport.kind == "console" and not (client.config.transport or {}).get("type"):
        raise ConfigError(["nothing says where to: give lineage.url, or OPENLINEAGE_URL"])
    return client
