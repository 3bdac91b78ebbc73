"""Clients of Kafka, made with the secrets that their files hold at that moment, and made anew when those change.

librdkafka reads certificates, passwords and ids once, when a client is made. So a rotated secret needs a new client;
the old one goes on until its owner lets go of it. Tokens need none: whoever gives them reads its secret each time.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaException

from kgs_core.config import Settings
from kgs_core.errors import PortError, TransientError, one_line
from kgs_core.kafka.client_config import TOKEN_FUNCTION, reading_client
from kgs_core.kafka.errors import port_error
from kgs_core.kafka.tokens import FunctionTokens, TokenSource
from kgs_core.system.patience import LogOnChange
from kgs_core.system.secret_files import SecretFiles, with_secrets

T = TypeVar("T")
_OAUTH = "sasl.oauthbearer."
_log = logging.getLogger(__name__)


def token_source(config: Mapping[str, Any]) -> TokenSource | None:
    """Who gives the tokens of a client of this configuration; None: it needs none.

    librdkafka could fetch a provider's tokens itself, but reads the secret once, has a token for each client, and
    lets it go at 80 % of its life.

    Raises:
        PermanentError: a file cannot be read.
    """
    own = {key: value for key, value in config.items() if key.startswith((TOKEN_FUNCTION, _OAUTH, "https."))}
    return _token_source(tuple(sorted(own.items())), os.getpid())


@lru_cache(maxsize=8)
def _token_source(own: tuple[tuple[str, Any], ...], _pid: int) -> TokenSource | None:
    """One in a process; a forked one has none of its parent's threads."""
    client = dict(own)
    if (function := client.get(TOKEN_FUNCTION)) is not None:
        return FunctionTokens(str(function))
    if any(key.startswith(_OAUTH) for key in client):
        from kgs_core.kafka.oidc_tokens import OidcTokens  # with an HTTP client, which takes time to load

        return OidcTokens(client)
    return None


def plain_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Librdkafka's own settings of a client, secrets read; without those for tokens, which we give.

    Raises:
        PermanentError: a file cannot be read.
    """
    given = {key: value for key, value in config.items() if not key.startswith((TOKEN_FUNCTION, _OAUTH, "https."))}
    return with_secrets("kafka.client", given)


def python_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that confluent_kafka's classes take, with `oauth_cb`; a TransientError where there is no token now.

    The client itself would say so after ten seconds, in other words.
    """
    settings, source = plain_settings(config), token_source(config)
    if source is None:
        return settings
    tokens = source
    tokens.token()

    def oauth_cb(_config: str) -> tuple[str, float, str, dict[str, str]]:
        found = tokens.token()
        return found.value, found.expires_s, found.principal, dict(found.extensions)

    return {**settings, "oauth_cb": oauth_cb}


def consumer_of(settings: Settings) -> Consumer:
    """A reading client for a short time; a KafkaException where a setting is refused."""
    return Consumer(python_settings(reading_client(settings)))


class RotatingClient(Generic[T]):
    """A client that is replaced by a new one when files of its secrets have changed; for several threads.

    The old one is not closed: another thread may be in the middle of a call. It ends when nobody has it any more.
    """

    def __init__(self, config: Mapping[str, Any], make: Callable[[dict[str, Any]], T]) -> None:
        """Makes the first client; where there is only no token now, `get` does.

        Raises:
            PermanentError: a setting is refused, a file cannot be read, or there will be no token.
        """
        self._config, self._make = config, make
        self._lock = threading.Lock()
        self._say = LogOnChange(partial(_log.warning, "%s"))
        self._client: T | None = None
        try:
            self._renew()
        except TransientError:
            self._client = None

    def get(self) -> T:
        """The client; a PortError where there was none yet, and there cannot be one now."""
        with self._lock:
            if self._client is None:
                return self._renew()
            if self._files.have_changed():
                try:
                    self._renew()
                except PortError as e:  # a key without its certificate, say: they come one by one
                    self._say(f"secrets of the client have changed, and do not fit yet: {one_line(e)}")
            return self._client

    def another(self) -> T:
        """A new client, beside the one there is.

        Raises:
            PortError: there cannot be one now.
        """
        with self._lock:
            return self._new()[0]

    def keep(self, client: T, instead_of: T) -> None:
        """Hand out one that has had an answer from now on, unless another thread has replaced the former one by now."""
        with self._lock:
            if self._client is instead_of:
                self._client = client

    def renew(self) -> None:
        """Hand out a new client from now on.

        Raises:
            PortError: there cannot be one now.
        """
        with self._lock:
            self._renew()

    def take(self) -> T | None:
        """The client as it is, to be closed by the caller; None where there is none. The next `get` makes one anew."""
        with self._lock:
            client, self._client = self._client, None
            return client

    def _renew(self) -> T:
        self._client, self._files = self._new()
        self._say("")
        return self._client

    def _new(self) -> tuple[T, SecretFiles]:
        files = SecretFiles(self._config)
        settings = python_settings(self._config)
        try:
            return self._make(settings), files
        except KafkaException as e:
            where = str(self._config.get("bootstrap.servers", "without bootstrap.servers"))
            raise port_error(where, "client settings", e.args[0]) from e
