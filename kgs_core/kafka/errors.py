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
FINAL_TOKEN_FAILURE = "final: "  # noqa: S105 - a word
"""Begins what we tell librdkafka of a token that will not be had until a person acts."""
# librdkafka gives a wrong password's name to a token that could not be had, too: because its endpoint is away, or
# because that refuses (errors of RFC 6749, 5.2)
_WITHOUT_BEARER = "Failed to acquire SASL OAUTHBEARER token"
_BEARER_REFUSED = re.compile(
    r"invalid_(request|client|grant|scope)|unauthorized_client|unsupported_grant_type|access_denied|"
    + FINAL_TOKEN_FAILURE
)
_CALLBACK_FAILED = re.compile(r"OAuth callback raised exception|OAuth token not set within")
"""All that Python's client tells of a failure of ours to give it a token."""
_BEARER_FIX = "check sasl.oauthbearer.* and that the token endpoint answers"
_DENIED_FIX = "grant this user the right"
# "127.0.0.1:19/bootstrap: Connect to ipv4#127.0.0.1:19 failed: Connection refused (after 0ms in state CONNECT)"
_NOISE = re.compile(
    r"^\S+?/\w+: |^\w+://\S+?/\w+: | \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)"
)


_token_failures: list[PortError] = []


def note_token_failure(failure: PortError) -> None:
    """Remember, for this process, why the newest token was not to be had: clients say only that it was not."""
    _token_failures[:] = [failure]


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
    if _CALLBACK_FAILED.search(error.str()):
        return not any(isinstance(failure, PermanentError) for failure in _token_failures)
    return error.name() in _PASSING or (_is_about_token(error) and not _BEARER_REFUSED.search(error.str()))


def _is_about_token(error: KafkaError) -> bool:
    return error.name() == "_AUTHENTICATION" and _WITHOUT_BEARER in error.str()


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
    name = shown.name()
    fix = _BEARER_FIX if _is_about_token(shown) else _FIXES.get(name, "")
    fix = _DENIED_FIX if name.endswith("AUTHORIZATION_FAILED") else fix
    words = _NOISE.sub("", " ".join(shown.str().split())).rstrip(".")
    if _CALLBACK_FAILED.search(words):
        words, fix = str(_token_failures[0]) if _token_failures else "there is no token to sign in with", ""
    message = ": ".join(part for part in (f"Kafka {where}", what, words, fix) if part)
    return TransientError(message) if is_passing(shown) else PermanentError(message)
