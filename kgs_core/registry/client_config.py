"""Configuration of confluent-kafka's client of a schema registry."""

from kgs_core.config.registry import RegistrySettings
from kgs_core.system.secret_files import with_secrets

RETRIES = 1  # a connection that the registry closed while it was idle is worth one; who asks tries again anyway
RETRY_WAIT_MS = 200


def client_config(settings: RegistrySettings) -> dict[str, object]:
    """Configuration of one client.

    Raises:
        PermanentError: a file of secrets cannot be read.
    """
    conf: dict[str, object] = {
        "url": settings.url,
        "timeout": settings.timeout_s,
        "max.retries": RETRIES,
        "retries.wait.ms": RETRY_WAIT_MS,
    }
    secrets = with_secrets("registry", settings.secrets)
    if settings.username is not None:
        conf["basic.auth.user.info"] = f"{secrets['username']}:{secrets['password']}"
    if settings.token is not None:
        conf["bearer.auth.credentials.source"] = "STATIC_TOKEN"
        conf["bearer.auth.token"] = secrets["token"]
        conf["bearer.auth.logical.cluster"] = ""  # Confluent Cloud goes by the host name
    return conf
