"""Tokens of a user's function: what it may do wrong, and what comes of it."""

import threading
import time

import pytest
from confluent_kafka import KafkaError

from kgs_core.errors import PermanentError, TransientError
from kgs_core.kafka import tokens as module
from kgs_core.kafka.errors import is_passing, port_error
from kgs_core.kafka.tokens import FunctionTokens
from tests.meanwhile import at_once

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJrZ3MifQ.c2lnbmF0dXJlc2lnbmF0dXJl"
MINUTES = 300.0


def at(seconds):
    return time.time() + seconds  # noqa: TID251 - as the function would


@pytest.fixture
def function(tmp_path, monkeypatch):
    """Makes the module `made_tokens` with one function `get` that does what a callable says."""
    (tmp_path / "made_tokens.py").write_text("does = None\n\ndef get():\n    return does()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import made_tokens

    def set_to(does):
        monkeypatch.setattr(made_tokens, "does", does)
        return FunctionTokens("made_tokens:get")

    yield set_to
    del __import__("sys").modules["made_tokens"]


def raising(error):
    def does():
        raise error

    return does


def test_a_token_is_used_by_all_for_most_of_its_life(function, monkeypatch):
    made = []
    source = function(lambda: made.append(1) or (TOKEN, at(MINUTES), "me", {"a": "b"}))
    at_once([threading.Thread(target=source.token) for _ in range(8)])
    assert (source.token().value, source.token().principal, source.token().extensions) == (TOKEN, "me", {"a": "b"})
    assert len(made) == 1
    now = at(0)
    monkeypatch.setattr(module.time, "time", lambda: now + 0.81 * MINUTES)
    source.token()
    assert len(made) == 2


@pytest.mark.parametrize(
    ("does", "kind", "told"),
    [
        (raising(OSError("no route")), TransientError, "OSError: no route"),
        (raising(TimeoutError("slow")), TransientError, "TimeoutError: slow"),
        (raising(SystemExit(3)), TransientError, "SystemExit: 3"),
        (raising(ValueError(f"bad: {TOKEN}")), TransientError, r"ValueError: bad: \.\.\."),
        (raising(PermanentError("role taken away")), PermanentError, "role taken away: fix the function"),
        (lambda: (TOKEN, at(-5)), TransientError, "expired 5 s ago"),
        (lambda: None, PermanentError, "returned a value of type NoneType: return"),
        (lambda: TOKEN, PermanentError, "returned a value of type str"),
        (lambda: (TOKEN,), PermanentError, "tuple of 1"),
        (lambda: (b"x", 1), PermanentError, "the token is a value of type bytes"),
        (lambda: ("", at(9)), PermanentError, "the token is empty"),
        (lambda: (f"{TOKEN} ", at(9)), PermanentError, "the token is a text with blanks"),
        (lambda: (TOKEN, None), PermanentError, "the expiry is a value of type NoneType"),
        (lambda: (TOKEN, float("nan")), PermanentError, "the expiry is a value of type float"),
        (lambda: (TOKEN, True), PermanentError, "the expiry is a value of type bool"),
        (lambda: (TOKEN, 1000 * at(0)), PermanentError, "in seconds since 1970, not in milliseconds"),
        (lambda: (TOKEN, at(9), "me", {"a": 1}), PermanentError, "the extensions a mapping of texts"),
        (lambda: (TOKEN, at(9), "me", None), PermanentError, "the extensions a mapping of texts"),
    ],
)
def test_each_fault_has_its_kind_and_one_line_without_a_token(function, caplog, does, kind, told):
    source = function(does)
    for _ in range(2):
        with pytest.raises(kind, match=told) as caught:
            source.token()
    assert type(caught.value) is kind
    words = str(caught.value)
    assert words.startswith("kafka.token_function made_tokens:get: ")
    assert TOKEN not in words + caplog.text
    assert "\n" not in words
    assert caplog.messages == [words]
    raised = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire token: OAuth callback raised exception")
    assert is_passing(raised) is (kind is TransientError)
    assert isinstance(port_error("b:1", "read", raised), kind)
    assert words in str(port_error("b:1", "read", raised))


@pytest.mark.parametrize("name", ["no_such_module:get", "made_tokens:nothing"])
def test_a_function_that_is_not_there_is_final(function, name):
    function(None)
    with pytest.raises(PermanentError, match=r"cannot be loaded: .*: fix the function"):
        FunctionTokens(name).token()


def test_one_that_hangs_holds_up_nobody_and_is_called_anew(function, monkeypatch):
    monkeypatch.setattr(module, "CALL_TIMEOUT_S", 0.05)
    monkeypatch.setattr(module, "ABANDONED_S", 0.3)
    released, calls = threading.Event(), []

    def hangs():
        calls.append(1)
        if len(calls) < 2:
            released.wait(20)
        return TOKEN, at(MINUTES)

    source = function(hangs)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(TransientError, match="has not returned for"):
            source.token()
    assert len(calls) == 1
    assert time.monotonic() - began < 5
    time.sleep(0.3)
    assert source.token().value == TOKEN
    released.set()


def test_a_failure_that_is_over_gives_tokens_again(function, monkeypatch):
    monkeypatch.setattr(module, "ASK_S", 0.0)
    answers = iter([raising(OSError("away")), lambda: (TOKEN, at(MINUTES))])
    source = function(lambda: next(answers)())  # noqa: PLW0108 - another answer each time
    with pytest.raises(TransientError):
        source.token()
    assert source.token().value == TOKEN
