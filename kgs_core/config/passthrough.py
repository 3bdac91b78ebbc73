"""Which librdkafka settings a user may pass on: an allow-list, since some load code and some break exactly-once."""

from collections.abc import Mapping

from kgs_core.config.secret_files import reference_problems, secret_file

Scalar = str | int | bool

BREAKS_EXACTLY_ONCE = {
    "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "isolation.level",
    "enable.idempotence", "acks", "request.required.acks", "group.id", "enable.partition.eof", "check.crcs",
}  # fmt: skip
ALLOWED = {
    "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
    "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope",
    "sasl.oauthbearer.extensions", "sasl.oauthbearer.token.endpoint.url", "https.ca.location", "https.ca.pem",
    "ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.ca.pem",
    "ssl.certificate.pem", "ssl.key.pem", "ssl.endpoint.identification.algorithm", "ssl.cipher.suites",
    "client.rack", "client.dns.lookup", "broker.address.family", "metadata.max.age.ms",
    "socket.timeout.ms", "socket.keepalive.enable", "socket.receive.buffer.bytes", "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.ms", "connections.max.idle.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
    "fetch.wait.max.ms", "fetch.min.bytes", "fetch.max.bytes", "max.partition.fetch.bytes",
    "fetch.queue.backoff.ms", "queued.max.messages.kbytes", "receive.message.max.bytes",
}  # fmt: skip
OWN_OF_CLIENT = {
    "client.rack", "client.dns.lookup", "broker.address.family", "https.ca.location", "https.ca.pem",
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
    "ssl.key.pem", "ssl.key.password",
}  # fmt: skip
_OWN_OF_STORAGE = {
    "aws_endpoint", "aws_endpoint_url", "endpoint", "endpoint_url", "proxy_url", "proxy_ca_certificate",
    "aws_web_identity_token_file", "azure_storage_endpoint", "azure_endpoint", "azure_msi_endpoint",
    "azure_federated_token_file", "google_service_account", "google_service_account_path",
    "google_application_credentials",
}  # fmt: skip
OWN_OF_SPARK = {
    "spark.local.dir", "spark.driver.host", "spark.driver.bindAddress", "spark.driver.port", "spark.blockManager.port",
    "spark.ui.port",
}  # fmt: skip
_OAUTH = "sasl.oauthbearer."
_OAUTH_NEEDS = tuple(f"{_OAUTH}{name}" for name in ("client.id", "client.secret", "token.endpoint.url"))
SECRET_WORDS = ("pass", "secret", "key", "token", "pem", "credential", "jaas")


def mechanism_of(client: Mapping[str, Scalar]) -> str:
    """How a client signs in: what librdkafka takes where nothing is said is Kerberos."""
    return str(client.get("sasl.mechanism", client.get("sasl.mechanisms", "GSSAPI"))).upper()


def is_own_of_storage(name: str) -> bool:
    """Whether it is of the place where a process runs; names of the object store's options count in any case."""
    return name.lower() in _OWN_OF_STORAGE


def is_secret(name: str) -> bool:
    """Whether the value under this name must never be shown."""
    return any(word in name.lower() for word in SECRET_WORDS)


def is_secret_of_spark(name: str) -> bool:
    """The same of one of Spark's: some of its SQL settings change rows, and have such a word in their names."""
    return is_secret(name) and (not name.startswith("spark.sql.") or name.startswith("spark.sql.catalog."))


def check_kafka_client(client: Mapping[str, Scalar], token_function: str | None = None) -> None:
    """Refuse settings that break the guarantees or load code.

    Args:
        token_function: what gives tokens instead of a provider's endpoint.

    Raises:
        ValueError: all refused keys, in one message without any value of a secret.
    """
    problems = [problem for key in sorted(client) if (problem := _problem(key))]
    problems += reference_problems(client)
    protocol = str(client.get("security.protocol", "PLAINTEXT")).upper()
    if not protocol.startswith("SASL") and any(key.startswith("sasl.") for key in client):
        problems.append("sasl.* is set but security.protocol is not SASL_SSL: set it, or remove sasl.*")
    if protocol.startswith("SASL"):
        problems += _mechanism_problems(client, token_function)
    elif token_function is not None:
        problems.append("kafka.token_function needs security.protocol SASL_SSL and sasl.mechanism OAUTHBEARER")
    if problems:
        raise ValueError("; ".join(problems))


def _mechanism_problems(client: Mapping[str, Scalar], token_function: str | None) -> list[str]:
    mechanism = mechanism_of(client)
    if mechanism == "GSSAPI":
        return ["sasl.mechanism GSSAPI (Kerberos, the default) is not in Kafka's client here: set another mechanism"]
    if token_function is not None:
        needs = [] if mechanism == "OAUTHBEARER" else ["kafka.token_function needs sasl.mechanism OAUTHBEARER"]
        others = sorted(key for key in client if key.startswith(_OAUTH))
        return needs + [f"kafka.token_function gives the tokens: remove it, or '{key}'" for key in others]
    if mechanism != "OAUTHBEARER":
        return [f"'{key}' needs sasl.mechanism OAUTHBEARER" for key in sorted(client) if key.startswith(_OAUTH)]
    if str(client.get(f"{_OAUTH}method", "")).lower() != "oidc":
        return ["sasl.mechanism OAUTHBEARER: set sasl.oauthbearer.method to oidc, or kafka.token_function"]
    problems = [f"sasl.mechanism OAUTHBEARER: set {key}" for key in _OAUTH_NEEDS if not client.get(key)]
    if not str(client.get(_OAUTH_NEEDS[-1], "https://")).lower().startswith(("https://", "http://")):
        problems.append(f"{_OAUTH_NEEDS[-1]}: give http(s)://host/path")
    if "@" in str(client.get(_OAUTH_NEEDS[-1], "")):  # it is quoted in errors
        problems.append(f"{_OAUTH_NEEDS[-1]}: put user and password into client.id and client.secret")
    extensions = str(client.get(f"{_OAUTH}extensions", ""))
    if extensions and secret_file(extensions) is None and not all("=" in part for part in extensions.split(",")):
        problems.append(f"{_OAUTH}extensions: write name=value,name=value")
    return problems


def _problem(key: str) -> str | None:
    if key in BREAKS_EXACTLY_ONCE:
        return f"'{key}' breaks exactly-once and is set by kgs itself: remove it"
    if key not in ALLOWED:
        return f"'{key}' is not among the settings that may be passed on: remove it"
    return None
