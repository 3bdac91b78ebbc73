"""Tokens of an OpenID Connect provider for kafka-python, which fetches none itself; librdkafka does."""

import ssl
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus

import httpx2
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider

from kgs_core.errors import ConfigError, one_line

_TIMEOUT_S = 5.0
_USED_SHARE = 0.8  # of a token's life, as librdkafka does it


# kafka-python is not typed
class TokenRefusedError(KafkaError):  # type: ignore[misc]
    """Refusal of the token endpoint: the same request will be refused again."""


class TokenNotAnsweredError(KafkaError):  # type: ignore[misc]
    """A token endpoint that does not answer, or not now."""

    retriable = True


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens for a client's id and secret (RFC 6749, 4.4), each used for most of its life; for several threads."""

    def __init__(self, client: Mapping[str, str | int | bool]) -> None:
        """Provider with librdkafka's settings `sasl.oauthbearer.*` and `https.ca.*`.

        Raises:
            ConfigError: certificates cannot be read.
        """
        text = {key: str(value) for key, value in client.items()}
        own = {key.removeprefix("sasl.oauthbearer."): value for key, value in text.items()}
        self._url, self._user, self._secret = own["token.endpoint.url"], own["client.id"], own["client.secret"]
        self._form = {"grant_type": "client_credentials"} | ({"scope": own["scope"]} if own.get("scope") else {})
        self._extensions = dict(part.split("=", 1) for part in own.get("extensions", "").split(",") if "=" in part)
        try:
            self._tls = ssl.create_default_context(
                cafile=text.get("https.ca.location"), cadata=text.get("https.ca.pem")
            )
        except (OSError, ValueError) as e:
            raise ConfigError([f"kafka.client: https.ca.*: {one_line(e)}: check the file"]) from e
        self._lock = threading.Lock()
        self._kept: tuple[str, float] | None = None

    def token(self) -> str:
        """A token that has not expired.

        Raises:
            TokenRefusedError: the endpoint refuses id or secret.
            TokenNotAnsweredError: it does not answer, or not now.
        """
        with self._lock:
            now = time.monotonic()
            if self._kept is None or now >= self._kept[1]:
                token, life_s = self._fetched()
                self._kept = token, now + _USED_SHARE * life_s
            return self._kept[0]

    def extensions(self) -> dict[str, str]:
        """What is said to the broker beside the token."""
        return self._extensions

    def _fetched(self) -> tuple[str, float]:
        what = f"token endpoint {self._url}"
        try:
            answer = httpx2.post(
                self._url, data=self._form, auth=(self._user, self._secret), timeout=_TIMEOUT_S, verify=self._tls
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as e:
            raise TokenNotAnsweredError(f"{what}: {one_line(e)}") from e
        if answer.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise TokenRefusedError(f"{what}: {answer.status_code}: {' '.join(answer.text.split())[:200]}")
        try:
            found = answer.raise_for_status().json()
            return str(found["access_token"]), float(found.get("expires_in", 60))
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise TokenNotAnsweredError(f"{what}: {answer.status_code}: no token: {one_line(e)}") from e
