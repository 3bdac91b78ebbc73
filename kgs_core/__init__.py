"""The core of kgs, without Dagster. `import kgs_core as kgs` gives a program what `kgs_core.api` has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgs_core.api import Comparison, Packing, Picture, pack, read_speeds, simulate, stream

__all__ = ["Comparison", "Packing", "Picture", "pack", "read_speeds", "simulate", "stream"]


def __getattr__(name: str) -> Any:
    """A name of the face, imported at its first use: the package itself must cost nothing."""
    if name in __all__:
        return getattr(import_module("kgs_core.api"), name)
    raise AttributeError(f"module 'kgs_core' has no attribute '{name}'")
