"""Tokens that a function of the user makes (SASL/OAUTHBEARER): for identities of a cloud, as AWS' IAM.

1. The function is called in a thread of its own and waited for `CALL_TIMEOUT_S`: librdkafka's thread that asks for a
   token must not hang, for a client that is closed waits for it.
2. What it raises, and what expires before it is used, may be another time's: it is asked again. What is no token will
   not become one: a person must act. So it is where the function itself raises a PermanentError.
3. A token is used for most of its life by all clients of the process. Nobody quotes one: of an answer that is none
   only its type is told, and what an exception says is freed of whatever could be one.
"""

import importlib
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Protocol

from kgs_core.errors import PermanentError, PortError, TransientError, one_line
from kgs_core.kafka.errors import note_token, note_token_failure
from kgs_core.system.patience import LogOnChange

CALL_TIMEOUT_S = 8.0
ABANDONED_S = 60.0
MOST_ABANDONED = 10
USED_SHARE = 0.8
"""Of a token's life, as librdkafka does it; where there is no other one, it is used nearly to its end."""
RETRY_S, LEFT_S = 10.0, 5.0
_MILLISECONDS = 1e11  # as seconds, the year 5138
TOKEN = re.compile(r"[\x21-\x7e]+")
"""What one is made of."""
_PERHAPS_TOKEN = re.compile(r"[\w\-+/=.~%]{32,}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        value: as the broker is given it; never printed.
        principal: whose it is; librdkafka wants to know.
    """

    value: str = field(repr=False)
    expires_s: float
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


KeptToken = tuple[Token, float]
"""A token, and until when no other one is asked for, in seconds since 1970."""


def used_on(kept: KeptToken | None) -> KeptToken | None:
    """A token that is kept for longer, since there is no other one now; None: it is at its end."""
    now = time.time()
    if kept is None or now >= kept[0].expires_s - LEFT_S:
        return None
    return kept[0], min(now + RETRY_S, kept[0].expires_s - LEFT_S)


class TokenSource(Protocol):
    """Where a client's tokens come from; for several threads."""

    def token(self) -> Token:
        """A token that has not expired.

        Raises:
            TransientError: none now.
            PermanentError: none ever, until a person acts.
        """
        ...


def function_tokens(name: str) -> "FunctionTokens":
    """The tokens of the function `module:function`, one source in a process."""
    return _function_tokens(name, os.getpid())  # a forked process has none of its parent's threads


@lru_cache(maxsize=8)
def _function_tokens(name: str, _pid: int) -> "FunctionTokens":
    return FunctionTokens(name)


class FunctionTokens:
    """Port `TokenSource` on a function that returns (token, expiry) or (token, expiry, principal, extensions)."""

    def __init__(self, name: str) -> None:
        """Source of tokens; the function's module is loaded with the first one."""
        self._where = f"kafka.token_function {name}"
        self._name = name
        self._lock = threading.Lock()
        self._kept: KeptToken | None = None
        self._call: tuple[Future[Token], float] | None = None  # under way, since
        self._abandoned = 0
        self._say = LogOnChange(partial(_log.warning, "%s"))

    def token(self) -> Token:
        """See `TokenSource`."""
        try:
            found = self._found()
        except PortError as e:
            self._say(str(e))
            with self._lock:
                if (kept := used_on(self._kept)) is not None:
                    self._kept = kept
                    return kept[0]
            note_token_failure(e)
            raise
        self._say("")
        note_token()
        return found

    def _found(self) -> Token:
        with self._lock:
            if self._kept is not None and time.time() < self._kept[1]:
                return self._kept[0]
            call = self._under_way()
        try:
            return call.result(CALL_TIMEOUT_S)
        except TimeoutError:
            raise TransientError(f"{self._where}: has not returned for {CALL_TIMEOUT_S:g} s: is waited for") from None

    def _under_way(self) -> "Future[Token]":
        """The call that is under way, or a new one; one that hangs is left behind at last."""
        now = time.monotonic()
        if self._call is not None and not self._call[0].done():
            if now < self._call[1] + ABANDONED_S or self._abandoned >= MOST_ABANDONED:
                return self._call[0]
            self._abandoned += 1
        call: Future[Token] = Future()
        self._call = call, now
        threading.Thread(target=self._answer, args=(call,), name="kafka-token", daemon=True).start()
        return call

    def _answer(self, call: "Future[Token]") -> None:
        """Call the function, and keep its token before anybody hears of it: none is asked for twice."""
        try:
            found = self._checked(self._called())
        except PortError as e:
            call.set_exception(e)
            return
        now = time.time()
        with self._lock:
            self._kept = found, now + USED_SHARE * (found.expires_s - now)
        call.set_result(found)

    def _called(self) -> object:
        try:
            return _loaded(self._name)()
        except PermanentError as e:
            raise PermanentError(f"{self._raised(e)}: fix the function, or its input") from None
        except BaseException as e:  # noqa: BLE001 - the user's own; SystemExit, too
            raise TransientError(self._raised(e)) from None

    def _raised(self, error: BaseException) -> str:
        kind = "" if isinstance(error, PermanentError) else f"{type(error).__name__}: "
        return f"{self._where}: {kind}{_PERHAPS_TOKEN.sub('...', one_line(error))}"

    def _checked(self, answer: object) -> Token:
        if not isinstance(answer, tuple | list) or len(answer) not in (2, 4):
            raise self._nonsense(f"returned {_kind(answer)}")
        value, expires_s, principal, extensions = (*answer, "", {})[:4]
        if not isinstance(value, str) or not TOKEN.fullmatch(value):
            what = "a text with blanks or other characters than ASCII's" if isinstance(value, str) else _kind(value)
            raise self._nonsense(f"the token is {what if value != '' else 'empty'}")
        if isinstance(expires_s, bool) or not isinstance(expires_s, int | float) or not math.isfinite(expires_s):
            raise self._nonsense(f"the expiry is {_kind(expires_s)}")
        if expires_s > _MILLISECONDS:
            raise self._nonsense("the expiry is too far: it is in seconds since 1970, not in milliseconds")
        pairs = extensions.items() if isinstance(extensions, Mapping) else [(None, None)]
        if not isinstance(principal, str) or not all(isinstance(text, str) for pair in pairs for text in pair):
            raise self._nonsense("the principal must be a text, the extensions a mapping of texts")
        if expires_s <= time.time():
            raise TransientError(
                f"{self._where}: returned a token that expired {time.time() - expires_s:.0f} s ago: it must ask for a "
                "new one, or check the clock of this machine"
            )
        return Token(value, float(expires_s), principal, dict(extensions))

    def _nonsense(self, what: str) -> PermanentError:
        return PermanentError(
            f"{self._where}: {what}: return (token, seconds since 1970 at which it expires), or those and "
            "(..., principal, extensions)"
        )


def _kind(value: object) -> str:
    size = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"a value of type {type(value).__name__}{size}"


def _loaded(name: str) -> Callable[[], Any]:
    module, _, function = name.partition(":")
    try:
        found: Callable[[], Any] = getattr(importlib.import_module(module), function)
    except Exception as e:
        raise PermanentError(f"cannot be loaded: {type(e).__name__}: {one_line(e)}") from e
    return found
