"""Compiles the inner loops of packing to machine code, once on a machine, and keeps that in the cache directory.

To be imported only where something is going to be computed: it costs half a second (docs/adr/0009).
"""

import hashlib
import inspect
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding

from kgs_core.adapters.system.cache_dir import build_once, cache_directory, flush
from kgs_core.errors import PermanentError

F = TypeVar("F", bound=Callable[..., object])
_LOOP = {"_nrt": False}


def compiled(function: F) -> F:
    """Part of a function that is `compiled_once`; compiled with it, or anew in each process that calls it itself."""
    return cast(F, _jit(function))


def compiled_loop(function: F) -> F:
    """The same for a function that makes no array: none is counted, which makes the search four times as fast."""
    return cast(F, _jit(function, _LOOP))


def compiled_once(*example: object, loop: bool = False) -> Callable[[F], F]:
    """Decorator that makes a function machine code when it is imported: the first process compiles, later ones load.

    It may call compiled functions of its own folder; when a file there changes, it is compiled again. Where the cache
    directory cannot be written to and does not have it, every process compiles, and warns.

    Args:
        example: arguments of the types that it is going to get; others are a TypeError.
        loop: it makes no array, as with `compiled_loop`.
    """
    types = tuple(map(numba.typeof, example))

    def decorate(function: F) -> F:
        return cast(F, _kept(function, partial(_jit, function, _LOOP if loop else {}, types)))

    return decorate


def _jit(
    function: Callable[..., object], options: dict[str, Any] | None = None, types: Any = None, *, cache: bool = False
) -> Any:
    return numba.njit(types, error_model="numpy", cache=cache, **(options or {}))(function)


def _kept(function: Callable[..., object], jit: Callable[..., Any]) -> Any:
    def build(directory: Path) -> None:
        with _numba_keeps_in(directory):
            jit(cache=True)
        flush(directory)

    try:
        folder = build_once(_folder(function) / function.__name__, build)
    except PermanentError as error:
        warnings.warn(f"packing is compiled anew by every process: {error}", stacklevel=4)
        return jit()
    try:
        with _numba_keeps_in(folder):
            return jit(cache=True)
    except RuntimeError:  # it may not write there, and numba reads no folder that it could not write to
        with TemporaryDirectory() as copy, _numba_keeps_in(shutil.copytree(folder, copy, dirs_exist_ok=True)):
            return jit(cache=True)


@contextmanager
def _numba_keeps_in(folder: Path | str) -> Iterator[None]:
    """NUMBA_CACHE_DIR, and no other place: what lies beside the source may be of other source."""
    settings = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    before = {name: getattr(numba.config, name) for name in settings}
    try:
        vars(numba.config).update(settings)
        yield
    finally:
        vars(numba.config).update(before)


def _folder(function: Callable[..., object]) -> Path:
    """Named by all that the code depends on; numba itself looks at no file but the function's own."""
    home = Path(inspect.getfile(function)).parent
    asked = vars(numba.config)  # NUMBA_CPU_NAME=generic: for any processor
    name, features = asked["CPU_NAME"], asked["CPU_FEATURES"]
    if name is None:
        name = binding.get_host_cpu_name()
    if features is None:
        features = binding.get_host_cpu_features().flatten()
    what = hashlib.sha256(f"{home} {numba.__version__} {sys.version} {name} {features}".encode())
    for source in (Path(__file__), *sorted(home.glob("*.py"))):
        what.update(hashlib.sha256(source.read_bytes()).digest())
    return cache_directory() / f"packing-{what.hexdigest()[:16]}"
