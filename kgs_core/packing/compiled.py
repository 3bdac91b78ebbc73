"""Compiles the inner loops of packing to machine code, once, and keeps that for later processes (docs/adr/0008).

To be imported only where something is going to be computed: it costs half a second.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """`function` as machine code, compiled at its first call unless an earlier process has done so.

    A change of a compiled function in another file goes unnoticed, so those that call each other share a file. Where no
    folder can be written to (NUMBA_CACHE_DIR, beside the file, or in the home directory), every process compiles anew.
    """
    return _compiled(function, {})


def compiled_loop(function: F) -> F:
    """The same for a function that makes no array: none is counted, which makes the search four times as fast."""
    return _compiled(function, {"_nrt": False})


def _compiled(function: F, options: dict[str, Any]) -> F:
    options = {"error_model": "numpy", **options}
    try:
        return cast(F, njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(F, njit(**options)(function))
