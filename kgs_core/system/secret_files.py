"""Secrets read from files of their own, and whether such files have changed since a client was made of them."""

import hashlib
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from kgs_core.config.secret_files import files_of, secret_file
from kgs_core.errors import PermanentError

CHECK_EVERY_S = 5.0
MAX_BYTES = 65_536
_log = logging.getLogger(__name__)
_known: dict[str, str] = {}
_missing: set[str] = set()
_Value = TypeVar("_Value", bound=str | int | bool)


def with_secrets(where: str, settings: Mapping[str, _Value]) -> dict[str, _Value | str]:
    """The settings with what stands in files, read now; one line end behind it is no part of a secret.

    A file that cannot be read counts as it was, where this process has read it before: whoever changes it is not done.

    Raises:
        PermanentError: a file cannot be read, or holds no secret, and did not before.
    """
    found: dict[str, _Value | str] = dict(settings)
    for name, value in settings.items():
        path = secret_file(value)
        if path is not None:
            found[name] = _known_or_read(f"{where}: {name}: file {path}", path)
    return found


def _known_or_read(where: str, path: str) -> str:
    try:
        _known[path] = _secret(where, Path(path))
    except PermanentError as e:
        if path not in _known:
            raise
        if path not in _missing:
            _log.warning("%s; what it held before is used", e)
        _missing.add(path)
    else:
        _missing.discard(path)
    return _known[path]


def _secret(where: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode()
    except OSError as e:
        why = (e.strerror or "unreadable").lower()
        raise PermanentError(f"{where}: {why}: fix the file or name another") from None
    except UnicodeDecodeError:
        raise PermanentError(f"{where}: is not UTF-8: a secret is a text") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or "\0" in text or len(content) > MAX_BYTES:
        what = "is empty" if not text else f"is not a text without NUL, of {MAX_BYTES} bytes at most"
        raise PermanentError(f"{where}: {what}: write the secret into it")
    return text


class SecretFiles:
    """Files that a client was made with: told by their content, since a new one may come as a link, in one move.

    For one thread, or behind its owner's lock.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        """Notes what is in the files that `settings` name; to be made before the client: no change is missed then."""
        self._paths = files_of(settings)
        self._noted = self._digest()
        self._due_s = time.monotonic() + CHECK_EVERY_S

    def have_changed(self) -> bool:
        """Whether a new client is due; looks every `CHECK_EVERY_S`."""
        if not self._paths or time.monotonic() < self._due_s:
            return False
        return self.look()

    def look(self) -> bool:
        """As `have_changed`, at once. What cannot be read now counts as it was: whoever changes it is not done."""
        self._due_s = time.monotonic() + CHECK_EVERY_S
        found = self._digest()
        return any(now is not None and now != before for now, before in zip(found, self._noted, strict=True))

    def _digest(self) -> tuple[bytes | None, ...]:
        return tuple(map(_digest_of, self._paths))


def _digest_of(path: str) -> bytes | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).digest()
    except OSError:
        return None
