"""Compiles the inner loops of packing to machine code, once, and keeps that for later processes (docs/adr/0008).

To be imported only where something is going to be computed: it costs half a second.
"""

import hashlib
import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code, compiled at its first call unless an earlier process has done so.

    It may call compiled functions of its own folder; when one of them changes, it is compiled again. Where no folder
    can be written to (NUMBA_CACHE_DIR, beside the file, or in the home directory), every process compiles anew.
    """
    return _compiled(function, {})


def compiled_loop(function: F) -> F:
    """The same for a function that makes no array: none is counted, which makes the search four times as fast."""
    return _compiled(function, {"_nrt": False})


def _compiled(function: F, options: dict[str, Any]) -> F:
    dispatcher = njit(error_model="numpy", **options)(function)
    with suppress(RuntimeError):  # no folder to write to
        dispatcher._cache = _Cache(function)  # noqa: SLF001 - what `cache=True` does, with a cache that is checked
    return cast(F, dispatcher)


@cache
def _stamp(folder: Path) -> str:
    """Changes with the source of any compiled function in the folder; numba looks at the function's own file only."""
    sources = (path.read_bytes() for path in sorted(folder.glob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"\n@compiled" in source)).hexdigest()


class _SealedFiles(IndexDataCacheFile):
    """Files that count as missing when they are torn or hold another source's code.

    numba itself trusts them. A torn one then raises in every process, or ends it; and who is killed between the new
    index and the new code leaves the old code under the new source's name (tests/core/packing/test_compiled_cache.py).
    """

    def load(self, key: object) -> object:
        try:
            seal, code = super().load(key)
            return pickle.loads(code) if seal == self._seal(key, code) else None  # noqa: S301 - as safe as the folder
        except Exception:  # noqa: BLE001 - a torn pickle raises anything
            return None

    def save(self, key: object, data: object) -> None:
        code = self._dump(data)
        super().save(key, (self._seal(key, code), code))

    def _load_index(self) -> dict[object, str]:
        try:
            return dict(super()._load_index())
        except Exception:  # noqa: BLE001 - a torn pickle raises anything
            return {}

    def _seal(self, key: object, code: bytes) -> bytes:
        return hashlib.sha256(repr((key, self._source_stamp)).encode() + code).digest()


class _Cache(FunctionCache):
    """numba's cache, over sealed files; a full disk is no reason not to pack."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamp = _stamp(Path(inspect.getfile(function)).parent)
        self._cache_file = _SealedFiles(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)
