"""Factory of the lake, in the format of tables that the settings name."""

from pkgutil import resolve_name

from kgs_core.config.settings import TABLE_FORMATS, LakeSettings
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.ports import Lake


def open_lake(settings: LakeSettings, consumer: str = "", commits: CommitWay = "auto") -> Lake:
    """The lake that the settings name; the store is asked nothing yet.

    Args:
        consumer: who commits, for those who read the tables' logs.
        commits: forced by tests and measurements alone.
    """
    lake: Lake = resolve_name(TABLE_FORMATS[settings.format])(settings, consumer, commits)
    return lake
