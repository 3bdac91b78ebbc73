"""The core of kgs, without Dagster. `import kgs_core as kgs` gives a program what `kgs_core.api` has.

`kgs_core.__version__` is the version that is installed, which pyproject.toml alone names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgs_core.api.algorithms import algorithms, register_algorithm
    from kgs_core.api.packing import Packing, pack
    from kgs_core.api.plans import PlanReport, plan
    from kgs_core.api.replays import Comparison, Picture, read_speeds, simulate, stream
    from kgs_core.api.reports import AuditReport, StatusReport, audit, complete, status

__version__: str

__all__ = [
    "AuditReport",
    "Comparison",
    "Packing",
    "Picture",
    "PlanReport",
    "StatusReport",
    "algorithms",
    "audit",
    "complete",
    "pack",
    "plan",
    "read_speeds",
    "register_algorithm",
    "simulate",
    "status",
    "stream",
]

_MODULES = {
    "algorithms": ("algorithms", "register_algorithm"),
    "packing": ("Packing", "pack"),
    "plans": ("PlanReport", "plan"),
    "replays": ("Comparison", "Picture", "read_speeds", "simulate", "stream"),
    "reports": ("AuditReport", "StatusReport", "audit", "complete", "status"),
}


def __getattr__(name: str) -> Any:
    """A name of the face, imported at its first use: the package itself must cost nothing."""
    if name == "__version__":
        return import_module("importlib.metadata").version("kgs")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"kgs_core.api.{module}"), name)
    raise AttributeError(f"module 'kgs_core' has no attribute '{name}'")
