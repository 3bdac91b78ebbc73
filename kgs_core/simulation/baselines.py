"""All baselines that algorithms are compared with: the one place that knows which there are."""

from kgs_core.simulation.keda import KEDA
from kgs_core.simulation.round_robin import ROUND_ROBIN
from kgs_core.simulation.strategies import Baseline

BASELINES: dict[str, Baseline] = {each.name: each for each in (ROUND_ROBIN, KEDA)}
"""Name without its parameter -> baseline."""


def find_baseline(name: str) -> tuple[Baseline, str] | None:
    """Baseline and parameter that a name means, as `kafka:24`; None: it means none."""
    kind, colon, parameter = name.partition(":")
    baseline = BASELINES.get(kind)
    if baseline is None or bool(colon) != bool(baseline.parameter) or not baseline.accepts(parameter):
        return None
    return baseline, parameter


def baseline_usage() -> str:
    """How the names are written, for messages: `kafka:CONSUMERS or keda`."""
    return " or ".join(each.usage for each in BASELINES.values())


def baseline_help() -> str:
    """The same with what each one is."""
    return " or ".join(f"{each.usage} ({each.about})" for each in BASELINES.values())
