"""Settings for commands that only look at topics: a whole kgs.yaml is not needed for them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kgs_core.api.configuration import settings_of
from kgs_core.config import Settings, parse_settings
from kgs_core.config.yaml_tree import load_tree
from kgs_core.errors import ConfigError
from kgs_core.system.files import read_text
from kgs_core.system.transform_folder import use_folder_for_tokens

_ANY_TOPIC = [{"pattern": ".*"}]


def broker_settings(config_file: Path, bootstrap_servers: str | None) -> Settings:
    """Settings to look at topics with: the configuration's, of which its rules may be unfinished, or those brokers.

    Raises:
        ConfigError: neither is there, or what is wrong is no rule.
    """
    if bootstrap_servers is not None:
        tree: Any = {"group": "none", "kafka": {"bootstrap_servers": bootstrap_servers}, "lake": {"root": "none"}}
        return _parsed(tree, "--bootstrap-servers", {})
    try:
        return settings_of(config_file)
    except ConfigError as e:
        if not config_file.exists():
            raise ConfigError([f"{config_file}: no such file: give --bootstrap-servers, or name another file"]) from e
        try:
            tree = load_tree(read_text(config_file).encode(), str(config_file))
            settings = _parsed(tree, str(config_file), os.environ)
        except (ConfigError, TypeError):
            raise e from None
        use_folder_for_tokens(config_file, settings)
        return settings


def _parsed(tree: Any, source: str, environ: Mapping[str, str]) -> Settings:
    return parse_settings(yaml.safe_dump({**tree, "topics": _ANY_TOPIC}).encode(), source, environ)
