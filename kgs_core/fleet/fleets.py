"""All fleets by name: the one place that knows where `kgs control` can have its consumers run."""

from kgs_core.config import Settings
from kgs_core.fleet.controller_fleet import BuildFleet, ControllerFleet, FleetOptions


def _local(settings: Settings, options: FleetOptions) -> ControllerFleet:
    from kgs_core.fleet.local import local_fleet  # psutil: only for those who use it

    return local_fleet(settings, options)


def _kubernetes(settings: Settings, options: FleetOptions) -> ControllerFleet:
    from kgs_core.fleet.kubernetes import kubernetes_fleet  # its client: only for those who use it

    return kubernetes_fleet(settings, options)


FLEETS: dict[str, BuildFleet] = {"local": _local, "kubernetes": _kubernetes}
"""Name, as `kgs control --fleet` takes it -> what makes the fleet. The runs of Dagster are not here: Dagster's daemon
starts those (`kgs_dagster/launch.py`)."""
