"""Keycloak on this machine: a provider of tokens, and a broker that takes nothing else."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from kgs_core.system.subprocesses import ChildProcess
from kgs_core.system.tcp_ports import HOST, PortReservation
from tests.system.maven_archives import JAVA, SMALL_JVM, unpacked
from tests.waiting import wait_until

VERSION = "26.7.3"
_NAME = f"keycloak-{VERSION}"
AUDIENCE = "kafka"
_ADMIN = "admin"
_MADE_FOR = ("build", "--db=dev-file", "--cache=local", "--health-enabled=false", "--metrics-enabled=false")


class Keycloak:
    """A provider with one realm, which it keeps in a file; can be killed and started again.

    Attributes:
        url: of the realm's interface for clients: `<url>/token`, `<url>/certs`.
        issuer: that its tokens name.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self._ports = PortReservation()
        port = self._ports.reserve()
        self._root = f"http://{HOST}:{port}"
        self.issuer = f"{self._root}/realms/kgs"
        self.url = f"{self.issuer}/protocol/openid-connect"
        options = [
            "--http-enabled=true",
            f"--http-host={HOST}",
            f"--http-port={port}",
            "--hostname-strict=false",
            f"--db-url=jdbc:h2:file:{folder / 'realms'};NON_KEYWORDS=VALUE;WRITE_DELAY=0",  # a kill loses nothing
        ]
        environ = {**os.environ, "KC_BOOTSTRAP_ADMIN_USERNAME": _ADMIN, "KC_BOOTSTRAP_ADMIN_PASSWORD": _ADMIN}
        command = [*_java(program), "start", "--optimized", *options]
        self._child = ChildProcess("keycloak", command, folder / "keycloak.log", environ)

    def start(self) -> None:
        """Returns when it answers; it may be running already."""
        if self._child.pid is None:
            self._child.start()
        wait_until(self._answers, 90, f"Keycloak answers: {self._child.log_tail(5)}")

    def kill(self) -> None:
        self._child.kill()

    def close(self) -> None:
        self.kill()
        self._ports.release()

    def make_realm(self, token_life_s: int, secrets: dict[str, str]) -> None:
        """Realm whose clients, by id, have these secrets, and tokens of their own for the broker."""
        audience = {"included.custom.audience": AUDIENCE, "access.token.claim": "true"}
        mapper = {"name": AUDIENCE, "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
        clients = [
            {
                "clientId": client,
                "secret": secret,
                "serviceAccountsEnabled": True,
                "protocolMappers": [{**mapper, "config": audience}],
            }
            for client, secret in secrets.items()
        ]
        realm = {"realm": "kgs", "enabled": True, "accessTokenLifespan": token_life_s, "clients": clients}
        self._administer("POST", "", realm)

    def change_secret(self, client: str, secret: str) -> None:
        """The former one is refused from now on."""
        (found,) = self._administer("GET", f"/kgs/clients?clientId={client}").json()
        self._administer("PUT", f"/kgs/clients/{found['id']}", {**found, "secret": secret})

    def _administer(self, method: str, path: str, tree: dict[str, Any] | None = None) -> httpx2.Response:
        form = {"grant_type": "password", "client_id": "admin-cli", "username": _ADMIN, "password": _ADMIN}
        with httpx2.Client(timeout=60) as client:
            answer = client.post(f"{self._root}/realms/master/protocol/openid-connect/token", data=form)
            token = answer.raise_for_status().json()["access_token"]
            headers = {"Authorization": f"Bearer {token}"}
            answer = client.request(method, f"{self._root}/admin/realms{path}", json=tree, headers=headers)
            return answer.raise_for_status()

    def _answers(self) -> bool:
        assert self._child.pid is not None, self._child.log_tail(20)
        try:
            return httpx2.get(f"{self._root}/realms/master", timeout=2).status_code == httpx2.codes.OK
        except httpx2.HTTPError:
            return False


def _java(program: Path) -> list[str]:
    """As its own script does it, which would leave the server behind where the script is killed."""
    pools = "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory"
    properties = {
        "kc.home.dir": program,
        "jboss.server.config.dir": program / "conf",
        "java.util.logging.manager": "org.jboss.logmanager.LogManager",
        "java.util.concurrent.ForkJoinPool.common.threadFactory": pools,
    }
    options = [f"-D{name}={value}" for name, value in properties.items()]
    start = ["-cp", str(program / "lib/quarkus-run.jar"), "io.quarkus.bootstrap.runner.QuarkusEntryPoint"]
    return [str(JAVA), *SMALL_JVM, *options, *start]


def _build(folder: Path) -> None:
    subprocess.run([*_java(folder / _NAME), *_MADE_FOR], check=True, capture_output=True, timeout=300)


@contextmanager
def running_keycloak(folder: Path) -> Iterator[Keycloak]:
    """Running while the block does, without a realm."""
    program = unpacked("org.keycloak", "keycloak-quarkus-dist", VERSION, finish=_build) / _NAME
    keycloak = Keycloak(program, folder)
    try:
        keycloak.start()
        yield keycloak
    finally:
        keycloak.close()


@contextmanager
def guarded_kafka(keycloak: Keycloak, folder: Path) -> Iterator[tuple[EmbeddedKafka, str]]:
    """A broker, and the address where it takes nothing but the realm's tokens, and nobody longer than a token lives.

    Its `bootstrap_servers` ask for none: they are for what looks on.
    """
    module = "org.apache.kafka.common.security.oauthbearer"
    of_tokens = "listener.name.tokens.oauthbearer"
    ports = PortReservation()
    plain, tokens, controller = (ports.reserve() for _ in range(3))
    ports.release()
    keys = f"{keycloak.url}/certs"
    settings = {
        "listeners": f"CLIENT://{HOST}:{plain},TOKENS://{HOST}:{tokens},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"CLIENT://{HOST}:{plain},TOKENS://{HOST}:{tokens}",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,TOKENS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{of_tokens}.connections.max.reauth.ms": "3600000",
        f"{of_tokens}.sasl.jaas.config": f"{module}.OAuthBearerLoginModule required;",
        f"{of_tokens}.sasl.server.callback.handler.class": f"{module}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": keycloak.issuer,
    }
    with pytest.MonkeyPatch.context() as patch:
        # It asks no address for keys that it was not allowed
        patch.setenv("JDK_JAVA_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}")
        kafka = EmbeddedKafka.start(folder, port=plain, settings=settings, log=print)
    with kafka:
        yield kafka, f"{HOST}:{tokens}"
