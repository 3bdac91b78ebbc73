"""Factory of the lake: the one place where the format of its tables is chosen."""

from kgs_core.adapters.lake.delta_lake import DeltaLake
from kgs_core.config.settings import LakeSettings
from kgs_core.ports import Lake


def open_lake(settings: LakeSettings) -> Lake:
    """The lake that the settings name; the store is asked nothing yet."""
    return DeltaLake(settings)
