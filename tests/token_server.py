"""Token endpoint of an OpenID Connect provider, for tests: client credentials in, a signed token out, and the keys."""

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from tests.loopback_http import LoopbackServer, QuietHandler

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
_KEY_ID = "one"


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenServer(LoopbackServer):
    """A running provider.

    Attributes:
        clients: client id -> secret.
        life_s: of a token.
        fault: what it answers instead of a token, where it is not None: a status.
        given: client ids that got a token, in order.
        refused: how often it refused.
    """

    def __init__(self) -> None:
        self.clients = {"kgs": "s3cret"}
        self.life_s = 300.0
        self.fault: int | None = None
        self.given: list[str] = []
        self.refused = 0
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        server = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - the name that http.server asks for
                self.reply(200, json.dumps(server.keys()).encode())

            def do_POST(self) -> None:  # noqa: N802
                form = parse_qs(self.body().decode())
                status, answer = server.answer(self.headers.get("Authorization", ""), form)
                self.reply(status, json.dumps(answer).encode())

        super().__init__(Handler)

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and body of a request for a token."""
        user, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.fault is not None:
            return self.fault, {"error": "temporarily_unavailable"}
        if form.get("grant_type") != ["client_credentials"] or self.clients.get(user) != secret:
            self.refused += 1
            return 401, {"error": "invalid_client", "error_description": "no such client, or another secret"}
        self.given.append(user)
        return 200, {"access_token": self.token(user), "token_type": "Bearer", "expires_in": int(self.life_s)}

    def token(self, subject: str) -> str:
        """A signed token of this subject."""
        now = int(datetime.now(UTC).timestamp())  # noqa: TID251 - as the broker reads it
        claims = {
            "sub": subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + int(self.life_s),
            "scope": "k",
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"

    def keys(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set."""
        public = self._key.public_key().public_numbers()
        n, e = (_text(number.to_bytes(size, "big")) for number, size in ((public.n, 256), (public.e, 3)))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, "n": n, "e": e}]}


def broker_settings(server: TokenServer) -> dict[str, str]:
    """Settings of an embedded broker whose clients sign in with this provider's tokens."""
    module = "org.apache.kafka.common.security.oauthbearer"
    listener = "listener.name.client.oauthbearer"
    return {
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{listener}.sasl.jaas.config": f"{module}.OAuthBearerLoginModule required;",
        f"{listener}.sasl.server.callback.handler.class": f"{module}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": f"{server.url}/keys",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }


def broker_options(server: TokenServer) -> str:
    """What the JVM of such a broker needs: it asks no address for keys that it was not allowed."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={server.url}/keys"
