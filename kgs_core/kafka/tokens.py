"""Tokens of clients (SASL/OAUTHBEARER), kept for a process; and those that a function of the user makes.

1. A token is asked for in a thread of its own and waited for `CALL_TIMEOUT_S`: librdkafka's thread that asks for one
   must not hang, for a client that is closed waits for it. One call in `ASK_S` asks, all others get its answer.
2. A token is used for most of its life by all clients of the process; where there is no other one, nearly to its end.
3. What fails may pass: it is asked again. What is no token will not become one: a person must act. So it is where a
   provider refuses, or the user's function raises a PermanentError; but after tokens were had, only for `REFUSED_S`: a
   new secret is not everywhere at once.
4. Nobody quotes a token: of an answer that is none only its type is told, and what an exception says is freed of
   whatever could be one.
"""

import importlib
import logging
import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kgs_core.errors import PermanentError, PortError, TransientError, one_line
from kgs_core.kafka.errors import note_token, note_token_failure
from kgs_core.system.patience import LogOnChange

CALL_TIMEOUT_S = 8.0
ABANDONED_S = 60.0
MOST_ABANDONED = 10
USED_SHARE = 0.8
"""Of a token's life, as librdkafka does it; where there is no other one, it is used nearly to its end."""
RETRY_S, LEFT_S = 10.0, 5.0
ASK_S = 1.0
REFUSED_S = 300.0
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


class TokenSource(ABC):
    """Where a client's tokens come from; for several threads."""

    def __init__(self, where: str) -> None:
        """`where`: what is named in errors."""
        self._where = where
        self._lock = threading.Lock()
        self._kept: KeptToken | None = None
        self._call: tuple[Future[Token], float] | None = None  # the last one, since
        self._abandoned = 0
        self._refused_since: float | None = None
        self._say = LogOnChange(partial(_log.warning, "%s"))

    @abstractmethod
    def _made(self) -> Token:
        """A new token.

        Raises:
            PortError: as `token`.
        """

    def token(self) -> Token:
        """A token that has not expired.

        Raises:
            TransientError: none now.
            PermanentError: none ever, until a person acts.
        """
        with self._lock:
            if self._kept is not None and time.time() < self._kept[1]:
                return self._kept[0]
            call, is_new = self._under_way()
            if not is_new and (usable := used_on(self._kept)) is not None:
                return usable[0]  # another thread asks for the next one, which may take its time
        try:
            found = call.result(CALL_TIMEOUT_S)
        except (PortError, TimeoutError) as e:
            return self._used_on(e)
        self._say("")
        note_token()
        return found

    def _used_on(self, error: PortError | TimeoutError) -> Token:
        """The token that is kept, for longer, since there is no other one now."""
        failure = self._judged(error)
        self._say(str(failure))
        with self._lock:
            if (kept := used_on(self._kept)) is not None:
                self._kept = kept
                return kept[0]
        note_token_failure(failure)
        raise failure from error

    def _judged(self, error: PortError | TimeoutError) -> PortError:
        if isinstance(error, TimeoutError):
            return TransientError(f"{self._where}: has not returned for {CALL_TIMEOUT_S:g} s: is waited for")
        is_final = isinstance(error, PermanentError)
        if is_final and self._kept is not None:
            now = time.monotonic()
            self._refused_since = now if self._refused_since is None else self._refused_since
            is_final = now - self._refused_since >= REFUSED_S
        return PermanentError(str(error)) if is_final else TransientError(str(error))

    def _under_way(self) -> "tuple[Future[Token], bool]":
        """The call that is under way, or has just failed, or a new one; one that hangs is left behind at last."""
        now = time.monotonic()
        if self._call is not None:
            call, since = self._call
            if is_over := call.done():
                stays = call.exception() is not None and now < since + ASK_S
            else:
                stays = now < since + ABANDONED_S or self._abandoned >= MOST_ABANDONED
            if stays:
                return call, False
            self._abandoned += not is_over
        call = Future()
        self._call = call, now
        threading.Thread(target=self._answer, args=(call,), name="kafka-token", daemon=True).start()
        return call, True

    def _answer(self, call: "Future[Token]") -> None:
        """Ask for a token, and keep it before anybody hears of it: none is asked for twice."""
        try:
            found = self._made()
        except BaseException as e:  # noqa: BLE001 - handed to who waits
            call.set_exception(e)
            return
        now = time.time()
        with self._lock:
            self._kept = found, now + USED_SHARE * (found.expires_s - now)
            self._refused_since = None
        call.set_result(found)


class FunctionTokens(TokenSource):
    """Tokens of a function that returns (token, expiry) or (token, expiry, principal, extensions)."""

    def __init__(self, name: str) -> None:
        """The function is `module:function`; the module is loaded with the first token."""
        super().__init__(f"kafka.token_function {name}")
        self._name = name

    def _made(self) -> Token:
        return self._checked(self._called())

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
