"""librdkafka's settings for our clients, with the user's own between our defaults and what the guarantee needs."""

import os
from collections.abc import Mapping

from kgs_core.config import Settings

TOKEN_FUNCTION = "kgs.token.function"  # noqa: S105 - a name
"""Setting of ours among librdkafka's: `module:function` that gives the tokens. `clients` takes it out."""
ZONE = "KGS_ZONE"
"""Environment variable: the zone of a consumer's process; empty: not known."""
MAX_ZONE = 100
"""Of its name, characters: it stands in every report."""
TIME_OUTS: Mapping[str, int] = {
    "socket.timeout.ms": 6500,
    "socket.connection.setup.timeout.ms": 6500,
    "reconnect.backoff.max.ms": 1000,
}
"""Of every client: rules 1 and 2 of `silent_brokers`."""


def reading_client(settings: Settings) -> dict[str, str | int | bool]:
    """What a reading client is made with. What the guarantee stands on is set last and cannot be overridden."""
    return {
        **TIME_OUTS,
        "fetch.wait.max.ms": 100,
        "fetch.max.bytes": 16_000_000,  # rule 8 of `silent_brokers`
        "fetch.queue.backoff.ms": 10,  # its default of 1000 stalls a client that has hit its queue's limit
        "max.partition.fetch.bytes": 4_000_000,
        "queued.max.messages.kbytes": 65_536,
        "receive.message.max.bytes": 1_000_000_000,  # its default cannot take a batch of records above 100 MB
        "metadata.max.age.ms": 30_000,
        "log_level": 2,  # its lines on stderr come twenty a second while a broker is away
        **_signing_in(settings),
        "bootstrap.servers": settings.kafka.bootstrap_servers,
        "group.id": settings.group,  # librdkafka wants one; no membership comes of it, partitions are assigned by us
        "auto.offset.reset": "error",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "check.crcs": True,
        "allow.auto.create.topics": False,
    }


def zone_of(settings: Settings) -> str | None:
    """Zone of this process, by the name that brokers have it by; None: not known.

    What kgs.yaml says comes before what the process is given.
    """
    text = str(settings.kafka.client.get("client.rack") or os.environ.get(ZONE, ""))
    return text.encode(errors="replace").decode()[:MAX_ZONE] or None


def fetching_client(settings: Settings) -> dict[str, str | int | bool]:
    """What a consumer's client for records is made with: it reads from its zone, and counts what comes from where."""
    zone = zone_of(settings)
    return reading_client(settings) | ({} if zone is None else {"client.rack": zone, "statistics.interval.ms": 5000})


def admin_client(settings: Settings) -> dict[str, str | int]:
    """What an administrating client, or one that writes, is made with."""
    skipped = ("fetch.", "max.partition.", "queued.", "receive.")
    passed = {k: v for k, v in _signing_in(settings).items() if not k.startswith(skipped)}
    return {**TIME_OUTS, **passed, "bootstrap.servers": settings.kafka.bootstrap_servers}


def _signing_in(settings: Settings) -> dict[str, str | int | bool]:
    """The user's settings, secrets in files still by their names: those are read when a client is made."""
    function = settings.kafka.token_function
    return settings.kafka.client | ({TOKEN_FUNCTION: function} if function is not None else {})
