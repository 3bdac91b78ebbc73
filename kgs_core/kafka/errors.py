"""librdkafka's errors in our words: worth another try or not, in one line, with what to mend."""

import re
import time

from confluent_kafka import KafkaError

from kgs_core.errors import PermanentError, PortError, TransientError

# Names, as librdkafka gives them. What is not here gives the same answer when asked again.
_PASSING = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_DESTROY_BROKER",  # the broker that was asked has left the cluster, or is not in all of its nodes' lists yet
        "_NOENT",  # a partition has no leader (yet)
        "_RESOLVE",  # may be a name server that restarts; a wrong name shows in the message
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_WAIT_COORD",
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PART",  # also what a broker says of a topic that was made a moment ago
    }
)
NO_ANSWER = frozenset({"_ALL_BROKERS_DOWN", "_DESTROY_BROKER", "_TIMED_OUT", "_TRANSPORT"})
_STALE = frozenset({"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_FOR_PARTITION"})
OLDEST_TESTED = (3, 6)
"""Version of the oldest brokers that `make test-kafka` is run with."""
NEWER = f"use brokers of Kafka {'.'.join(map(str, OLDEST_TESTED))} or later"
_FIXES = {
    "_AUTHENTICATION": "check sasl.mechanism, user and password",
    "_DESTROY_BROKER": "try again: the broker that was asked has left the cluster, or has only just joined it",
    "_NOENT": "check that topic and partition exist and that this user may read them",
    "_UNKNOWN_PARTITION": "check the partition's number",
    "_RESOLVE": "check the host in bootstrap.servers",
    "_SSL": "check security.protocol and the certificates",
    "_TIMED_OUT": "check that the brokers are up, the address and security.protocol",
    "_TRANSPORT": "check that the brokers are up, the address and security.protocol",
    "_UNSUPPORTED_FEATURE": NEWER,
    "INVALID_REPLICATION_FACTOR": "use at most as many replicas as there are brokers",
    "UNKNOWN_TOPIC_OR_PART": "check the topic's name",
    "UNSUPPORTED_VERSION": NEWER,
}
_TOKEN_MISSES = re.compile(r"OAuth callback raised exception|OAuth token not set within|OAUTHBEARER token")
"""All that clients tell of a failure of ours to give them a token."""
_BEARER_REFUSED = "invalid_token"
_BEARER_FIX = "check that the brokers accept the provider's tokens: their audience, issuer, keys and clock"
_DENIED_FIX = "grant this user the right"
NEXT_ASK_S = 15.0
"""librdkafka asks again for a token ten seconds after it got none, and has an expired one until then."""
# "127.0.0.1:19/bootstrap: Connect to ipv4#127.0.0.1:19 failed: Connection refused (after 0ms in state CONNECT)"
_NOISE = re.compile(
    r"^\S+?/\w+: |^\w+://\S+?/\w+: | \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)"
)


_token_failures: list[tuple[PortError, float | None]] = []
"""The newest one of this process, and when there were tokens again."""


def note_token_failure(failure: PortError) -> None:
    """Remember, for this process, why there is no token: clients say only that they are refused, or get no answer."""
    _token_failures[:] = [(failure, None)]


def note_token() -> None:
    """There are tokens (again); clients that had none may need a while to ask for one."""
    if _token_failures and _token_failures[0][1] is None:
        _token_failures[:] = [(_token_failures[0][0], time.monotonic())]


def _token_failure_behind(error: KafkaError) -> PortError | None:
    """What is wrong with this process's tokens, where that may be why a client of it is refused or not answered."""
    if not _token_failures or error.name() not in NO_ANSWER | {"_AUTHENTICATION"}:
        return None
    failure, ended = _token_failures[0]
    if ended is None:
        return failure
    return TransientError(str(failure)) if time.monotonic() < ended + NEXT_ASK_S else None


class ConnectionWatch:
    """Remembers why a client cannot connect; a request that fails with it only says that it timed out.

    Hand `note` to the client as `error_cb`.
    """

    def __init__(self) -> None:
        self._newest: tuple[float, KafkaError] | None = None

    def note(self, error: KafkaError) -> None:
        """Takes in one error of the client."""
        if error.name() != "_ALL_BROKERS_DOWN":  # follows from the others and says less
            self._newest = (time.monotonic(), error)

    def cause_since(self, started: float) -> KafkaError | None:
        """The newest connection error since `started`, seconds of `time.monotonic`."""
        return self._newest[1] if self._newest is not None and self._newest[0] >= started else None


def is_passing(error: KafkaError) -> bool:
    """Whether the same request may succeed when it is made again."""
    if (failure := _token_failure_behind(error)) is not None:
        return not isinstance(failure, PermanentError)
    return error.name() in _PASSING or _TOKEN_MISSES.search(error.str()) is not None


def is_stale(answer: object) -> bool:
    """Whether a partition was asked of the wrong leader, or of an earlier term of the right one."""
    return isinstance(answer, KafkaError) and answer.name() in _STALE


def port_error(where: str, what: str, error: KafkaError, cause: KafkaError | None = None) -> PortError:
    """The error to raise, `from` the client's.

    Args:
        where: e.g. the bootstrap servers.
        what: what was tried, e.g. "create topic 'a'".
        cause: the connection error behind it, used when `error` itself says no more than "no answer".
    """
    shown = cause if cause is not None and error.name() in NO_ANSWER else error
    words = _NOISE.sub("", " ".join(shown.str().split())).rstrip(".")
    if (failure := _token_failure_behind(shown)) is not None:
        words, fix = str(failure), ""
    else:
        fix = _fix(shown.name(), words)
    message = ": ".join(part for part in (f"Kafka {where}", what, words, fix) if part)
    return TransientError(message) if is_passing(shown) else PermanentError(message)


def _fix(name: str, words: str) -> str:
    if name.endswith("AUTHORIZATION_FAILED"):
        return _DENIED_FIX
    return _BEARER_FIX if _BEARER_REFUSED in words else _FIXES.get(name, "")
