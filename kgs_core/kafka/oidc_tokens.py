"""Tokens of an OpenID Connect provider."""

import os
import ssl
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx2

from kgs_core.errors import PermanentError, TransientError, one_line
from kgs_core.kafka.tokens import TOKEN, Token, TokenSource
from kgs_core.system.bounded_call import answer_within
from kgs_core.system.secret_files import with_secrets

_TIMEOUT_S = 5.0
_LIFE_S, _MOST_LIFE_S = 60.0, 1e9  # where the provider tells none; 30 years
_WHOLE_S = 3 * _TIMEOUT_S  # to connect, to send and to hear


class OidcTokens(TokenSource):
    """Tokens for a client's id and secret (RFC 6749, 4.4)."""

    def __init__(self, client: Mapping[str, str | int | bool]) -> None:
        """Provider with librdkafka's settings `sasl.oauthbearer.*` and `https.ca.*`, files read with each token.

        Raises:
            PermanentError: a file cannot be read.
        """
        self._client = dict(client)
        super().__init__(f"token endpoint {self._read()[0]['token.endpoint.url']}")

    def _read(self) -> tuple[dict[str, str], ssl.SSLContext]:
        text = {key: str(value) for key, value in with_secrets("kafka.client", self._client).items()}
        try:
            tls = _tls(text.get("https.ca.location"), text.get("https.ca.pem"))
        except (OSError, ValueError) as e:
            raise PermanentError(f"kafka.client: https.ca.*: {one_line(e)}: check the file") from e
        return {key.removeprefix("sasl.oauthbearer."): value for key, value in text.items()}, tls

    def _made(self) -> Token:
        own, tls = self._read()
        what = self._where
        form = {"grant_type": "client_credentials"} | ({"scope": own["scope"]} if own.get("scope") else {})
        extensions = dict(part.split("=", 1) for part in own.get("extensions", "").split(",") if "=" in part)
        signed_in = own["client.id"], own["client.secret"]
        try:
            with httpx2.Client(auth=signed_in, timeout=_TIMEOUT_S, verify=tls) as client:  # which ends the thread, too
                url = own["token.endpoint.url"]
                answer = answer_within(_WHOLE_S, lambda: client.post(url, data=form), "kafka-token-endpoint")
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as e:
            raise TransientError(f"{what}: {one_line(e)}") from e
        except (ImportError, ValueError) as e:  # of another kind than http, or for a package that is not there
            raise PermanentError(f"{what}: {one_line(e)}: check the proxy that the environment names") from e
        if answer.status_code in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            said = " ".join(answer.text.replace(own["client.secret"], "...").split())
            raise PermanentError(f"{what}: {answer.status_code}: {said[:200]}")
        try:
            value, life_s = _given(answer.raise_for_status().json())
        except (httpx2.HTTPError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise TransientError(f"{what}: {answer.status_code}: no token: {one_line(e)}") from e
        return Token(value, time.time() + life_s, own["client.id"], extensions)


def _tls(place: str | None, pem: str | None) -> ssl.SSLContext:
    """What librdkafka takes for `https.ca.location`: a file, a folder, or `probe`, its default: the system's own."""
    if place in (None, "probe"):
        return ssl.create_default_context(cadata=pem)
    is_folder = os.path.isdir(place)
    return ssl.create_default_context(
        cafile=None if is_folder else place, capath=place if is_folder else None, cadata=pem
    )


def _given(answer: Any) -> tuple[str, float]:
    """Token, and how many seconds it lives; a ValueError and others where it is none that a broker could be given."""
    value, told = answer["access_token"], answer.get("expires_in")
    life_s = _LIFE_S if told is None else float(told)
    if not isinstance(value, str) or not TOKEN.fullmatch(value):
        raise ValueError("access_token is not a text without blanks")
    if not 0 < life_s < _MOST_LIFE_S:
        raise ValueError(f"expires_in is {life_s:g}")
    return value, life_s
