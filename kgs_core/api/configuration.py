"""Configuration of a group as the face takes it: the path of a file, or settings that are there already."""

import os
from pathlib import Path

from kgs_core.config import Settings
from kgs_core.system.transform_folder import load_client_settings

Config = str | Path | Settings
"""A kgs.yaml, or what was read from one."""


def settings_of(config: Config) -> Settings:
    """The settings; see `load_client_settings`.

    Raises:
        ConfigError: the file cannot be read, or says what cannot be.
    """
    return config if isinstance(config, Settings) else load_client_settings(Path(config), os.environ)
