"""Folder where the functions that kgs.yaml names are looked for: that of kgs.yaml itself, in every process.

That folder comes first, then what is installed; the working directory never counts. A worker of Spark is a process of
its own, which finds the folder by its environment.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from kgs_core.config import Settings
from kgs_core.config.file import load_settings

_PATH = "PYTHONPATH"


def use_folder_of(config_file: Path, settings: Settings) -> None:
    """Put the folder of kgs.yaml first on the path of this process and of its children; before Spark starts.

    Only where a rule names a function: a group without one loads no code from there. That the working directory is not
    on the path is the business of whoever starts a process: `-P`, and `spark.executorEnv.PYTHONSAFEPATH`.
    """
    if any(rule.has_transform for rule in settings.topics):
        _put_first(config_file)
    else:
        use_folder_for_tokens(config_file, settings)


def use_folder_for_tokens(config_file: Path, settings: Settings) -> None:
    """Likewise, for who transforms nothing: only where `kafka.token_function` names a function."""
    if settings.kafka.token_function is not None:
        _put_first(config_file)


def load_client_settings(config_file: Path, environ: Mapping[str, str]) -> Settings:
    """As `load_settings`, for who connects to Kafka: its function that gives tokens can be loaded then.

    Raises:
        ConfigError: see `load_settings`.
    """
    settings = load_settings(config_file, environ)
    use_folder_for_tokens(config_file, settings)
    return settings


def _put_first(config_file: Path) -> None:
    folder = str(config_file.resolve().parent)
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    others = [entry for entry in os.environ.get(_PATH, "").split(os.pathsep) if entry not in ("", folder)]
    os.environ[_PATH] = os.pathsep.join([folder, *others])
