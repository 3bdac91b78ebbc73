"""Factory of the lake, in the format of tables that the settings name."""

from pkgutil import resolve_name

from kgs_core.config.settings import TABLE_FORMATS, LakeSettings
from kgs_core.ports import Lake


def open_lake(settings: LakeSettings) -> Lake:
    """The lake that the settings name; the store is asked nothing yet."""
    lake: Lake = resolve_name(TABLE_FORMATS[settings.format])(settings)
    return lake
