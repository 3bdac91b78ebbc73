"""Client of a schema registry with Confluent's interface, over the one that confluent-kafka brings."""

import base64
import logging
import os
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeVar

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from kgs_core.config.registry import RegistrySettings
from kgs_core.errors import ConfigError, KgsError, TransientError, one_line
from kgs_core.ports.registry import RegisteredSchema, SchemaKind, UnknownSchemaError
from kgs_core.registry.client_config import RETRIES, RETRY_WAIT_MS, client_config
from kgs_core.system.bounded_call import answer_within
from kgs_core.system.secret_files import SecretFiles

STEPS = 2
"""To connect and to hear: each has the time-out for itself, in each attempt."""
UNREACHABLE_S = 1.0
BREAK_S = 300.0
"""Longer than this between two answers, and how long the registry has had no such schema is counted anew."""
FAILING_SCHEMAS = 2  # one that it cannot answer must not keep others from being asked for
_NO_SUCH = range(40401, 40500)  # 40401 subject, 40402 version, 40403 schema; a plain 404 is some other server's
_SERIALIZED = "serialized"
ROUND_S, ROUND_ASKING_S = 200.0, 100.0
"""So long may all questions take together within a time: a round of many topics must end in `batch_timeout_s`."""
MAX_REFERENCES = 1000
MAX_DEPTH = 100  # parsers follow references by calling themselves
T = TypeVar("T")
_log = logging.getLogger(__name__)


def open_registry(settings: RegistrySettings) -> "RegistryClient":
    """The client of these settings: one in a process.

    Raises:
        ConfigError: the settings' certificates cannot be read.
    """
    return _client(settings, os.getpid())  # a forked process has no share in its parent's connections


@lru_cache(maxsize=16)
def _client(settings: RegistrySettings, _pid: int) -> "RegistryClient":
    return RegistryClient(settings)


class RegistryClient:
    """Client of one registry; may be used by several threads. Pickled, it is its settings.

    What was answered by id or GUID is kept for good; that there is none (UnknownSchemaError) is not.
    A registry that cannot be reached, or fails for several schemas, is not asked again for `UNREACHABLE_S`, so that a
    batch with many schemas waits for one time-out and not for each.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._connect()
        self._lock = threading.Lock()
        self._kept: dict[int | str, RegisteredSchema] = {}
        self._unreachable: tuple[float, str] | None = None
        self._took: deque[tuple[float, float]] = deque(maxlen=10_000)  # when questions began, and what they took
        self._lacks: dict[str, tuple[float, float]] = {}  # what -> when it first and last said that it has none
        self._failing: set[str] = set()  # what it failed to answer since it last answered anything

    def _connect(self) -> None:
        files = SecretFiles(self._settings.secrets)
        # Two, for its cache does not tell by the format in which a schema was asked for
        try:
            self._plain, self._serialized = (SchemaRegistryClient(client_config(self._settings)) for _ in range(2))
        except (OSError, ssl.SSLError, ValueError) as e:
            raise ConfigError([f"registry: {one_line(e)}: check SSL_CERT_FILE in the environment"]) from e
        self._files = files

    def _renew(self) -> None:
        """Go by new secrets; those that do not fit yet are tried again."""
        if not self._files.have_changed():
            return
        try:
            self._connect()
        except KgsError as e:
            _log.warning("secrets of the schema registry's client have changed, and do not fit yet: %s", one_line(e))

    def _hang_up(self) -> None:
        """Have new connections, and end the threads that still hear the old ones: a server may drip for days."""
        old = self._plain, self._serialized
        try:
            self._connect()
        except KgsError as e:
            _log.warning("schema registry: no new connection: %s", one_line(e))
            return
        for client in old:
            client.close()

    def __reduce__(self) -> tuple[Callable[..., "RegistryClient"], tuple[RegistrySettings]]:
        return open_registry, (self._settings,)

    def by_id(self, number: int) -> RegisteredSchema:
        """The schema of this id."""
        return self._of(number, number, lambda client, form: client.get_schema(number, fmt=form))

    def by_guid(self, guid: str) -> RegisteredSchema:
        """The schema of this GUID."""
        return self._of(guid, None, lambda client, form: client.get_schema_by_guid(guid, fmt=form))

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject."""
        self._renew()
        self._plain.clear_latest_caches()  # type: ignore[no-untyped-call]
        found = self._ask(f"subject {subject}", lambda: self._plain.get_latest_version(subject))
        number = found.schema_id
        return self._resolved(found.schema, number) if number is None else self.by_id(number)

    def _of(
        self, key: int | str, number: int | None, get: Callable[[SchemaRegistryClient, str | None], Schema]
    ) -> RegisteredSchema:
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        self._renew()
        try:
            schema = self._asked_for(f"schema {key}", lambda: get(self._plain, None))
            again = partial(get, self._serialized, _SERIALIZED)
            found = self._resolved(self._descriptor(f"schema {key}", schema, again), number)
        except UnknownSchemaError as e:
            raise UnknownSchemaError(str(e), self._lacking_s(f"schema {key}")) from e
        with self._lock:
            self._lacks.pop(f"schema {key}", None)
            return self._kept.setdefault(key, found)

    def _lacking_s(self, what: str) -> float:
        """How long the registry has said that it has no such schema, which it says now."""
        now = time.monotonic()
        with self._lock:
            first, last = self._lacks.pop(what, (now, now))
            self._lacks[what] = first if now - last < BREAK_S else now, now
            while now - self._lacks[oldest := next(iter(self._lacks))][1] > BREAK_S:
                del self._lacks[oldest]
            return now - self._lacks[what][0]

    def _descriptor(self, what: str, schema: Schema, again: Callable[[], Schema]) -> Schema:
        """The schema as kgs reads it: of Protobuf the descriptor in base64, whichever answer of the registry has it.

        Confluent's has it serialized only. Apicurio gives plainly what was registered, and serializes no descriptor; a
        .proto file it serializes to a text with the descriptor's bytes, which is whole where they are UTF-8.

        `again`: asks for it serialized.
        """
        if schema.schema_type != SchemaKind.PROTOBUF or _is_base64(schema.schema_str or ""):
            return schema
        text = self._asked_for(what, again).schema_str or ""
        if "\ufffd" in text:
            raise TransientError(
                f"schema registry {self._settings.url}: {what}: is a .proto file, whose descriptor it does not give "
                "whole: register the descriptor in base64, as confluent-kafka for Python does"
            )
        whole = text if _is_base64(text) else base64.b64encode(text.encode()).decode()
        return Schema(whole, schema.schema_type, schema.references)

    def _asked_for(self, what: str, question: Callable[[], Schema]) -> Schema:
        """The schema, if the answer is one: another server's page is none, though it may be JSON, and is not kept."""
        return self._checked(what, self._ask(what, question))

    def _checked(self, what: str, schema: Schema | None) -> Schema:
        text, kind = getattr(schema, "schema_str", None), getattr(schema, "schema_type", None)
        if schema is not None and isinstance(text, str) and text and (kind is None or isinstance(kind, str)):
            return schema
        for client in (self._plain, self._serialized):
            client.clear_caches()  # type: ignore[no-untyped-call]
        url = self._settings.url
        raise TransientError(
            f"{url} does not answer as a schema registry does: check registry.url: {what} is not a schema"
        )

    def _resolved(
        self,
        schema: Schema,
        number: int | None,
        known: dict[tuple[str, int], RegisteredSchema] | None = None,
        path: tuple[tuple[str, int], ...] = (),
    ) -> RegisteredSchema:
        """The schema with what it refers to, each asked for once; a subject may be deleted (softly) meanwhile.

        Args:
            known: what was asked for already.
            path: what refers to it.
        """
        try:
            kind = SchemaKind(schema.schema_type or SchemaKind.AVRO)
        except ValueError:
            raise UnknownSchemaError(f"schema {number}: a kind that kgs does not know: {schema.schema_type}") from None
        known = {} if known is None else known
        references = []
        for each in schema.references or ():
            at = (str(each.subject), int(each.version or 0))
            if at in path or len(path) == MAX_DEPTH or len(known) == MAX_REFERENCES:
                words = "refers to itself" if at in path else f"refers to more than {MAX_REFERENCES} others"
                words = f"refers to others more than {MAX_DEPTH} deep" if len(path) == MAX_DEPTH else words
                raise UnknownSchemaError(f"schema {number}: it {words}")
            if at not in known:
                what = f"subject {at[0]} version {at[1]}"
                of = self._ask(what, partial(self._plain.get_version, *at, deleted=True))
                again = partial(_serialized_version, self._serialized, *at)
                of_schema = self._descriptor(what, self._checked(what, of.schema), again)
                known[at] = self._resolved(of_schema, of.schema_id, known, (*path, at))
            references.append((str(each.name), known[at]))
        return RegisteredSchema(number, kind, schema.schema_str or "", tuple(references))

    def _ask(self, what: str, question: Callable[[], T]) -> T:
        """The answer.

        Raises:
            UnknownSchemaError: there is no such thing.
            TransientError: any other outcome; it says nothing of the schema.
        """
        unreachable = self._unreachable  # which another thread may change
        began = time.monotonic()
        if unreachable is not None and began < unreachable[0]:
            raise TransientError(unreachable[1])
        if sum(took_s for at, took_s in tuple(self._took) if at > began - ROUND_S) > ROUND_ASKING_S:
            raise TransientError(f"schema registry {self._settings.url} is slow: {what} is asked for later")
        try:
            answer = self._timed(question, began)
        except SchemaRegistryError as e:
            self._unreachable = None
            if e.error_code in _NO_SUCH:
                self._failing.clear()
                raise UnknownSchemaError(f"the schema registry has no {what}: {one_line(e)}") from e
            words = f"schema registry {self._settings.url}: {what}: {_words(e)}"
            self._note_failure(what, words)
            raise TransientError(words) from e
        except (httpx2.HTTPError, OSError) as e:
            words = f"schema registry {self._settings.url} does not answer: {one_line(e)}"
            self._note_failure(what, words, is_there=isinstance(e, httpx2.ReadTimeout | TimeoutError))
            raise TransientError(words) from e
        except (
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            RecursionError,
        ) as e:  # a page of another server, which is no JSON
            words = f"{self._settings.url} does not answer as a schema registry does: check registry.url: {one_line(e)}"
            self._note_failure(what, words)
            raise TransientError(words) from e
        except RuntimeError as e:  # this connection was another thread's, which has hung up
            raise TransientError(f"schema registry {self._settings.url}: {what} is asked for again") from e
        self._unreachable = None
        self._failing.clear()
        return answer

    def _timed(self, question: Callable[[], T], began: float) -> T:
        whole_s = (1 + RETRIES) * (STEPS * self._settings.timeout_s + RETRY_WAIT_MS / 1000)
        try:
            return answer_within(whole_s, question, "registry")
        except TimeoutError:
            self._hang_up()
            raise
        finally:
            self._took.append((began, time.monotonic() - began))

    def _note_failure(self, what: str, words: str, *, is_there: bool = True) -> None:
        """Nobody is at the address; or several questions in a row had no answer, which one alone need not mean."""
        self._failing.add(what)
        is_away = not is_there or len(self._failing) >= FAILING_SCHEMAS
        with self._lock:
            self._lacks = {w: at for w, at in self._lacks.items() if w != what and not is_away}  # it may be starting
        if is_away:
            self._unreachable = (time.monotonic() + UNREACHABLE_S, words)
            self._failing.clear()


def _serialized_version(client: SchemaRegistryClient, subject: str, version: int) -> Schema:
    return client.get_version(subject, version, deleted=True, fmt=_SERIALIZED).schema


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _words(error: SchemaRegistryError) -> str:
    way_out = {
        401: ": check registry.username and password, or token",
        403: ": check what registry.username or token may read",
        404: ": check registry.url",
    }
    return one_line(error) + way_out.get(error.http_status_code, "")
