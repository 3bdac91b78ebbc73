"""Factory of the lake."""

from kgs_core.config.settings import LakeSettings
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.ports import Lake


def open_lake(settings: LakeSettings, consumer: str = "", commits: CommitWay = "auto") -> Lake:
    """The lake that the settings name; the store is asked nothing yet.

    Args:
        consumer: who commits, for those who read the tables' logs.
        commits: forced by tests and measurements alone.
    """
    from kgs_core.lake.delta.delta_lake import DeltaLake  # the library is loaded where a lake is opened

    return DeltaLake(settings, consumer, commits)
