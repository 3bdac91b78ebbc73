"""Which groups Dagster looks after, and what it experiments with: the one place where the environment is read."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from kgs_core.config import Settings
from kgs_core.config.kubernetes import KubernetesSettings
from kgs_core.config.settings import DEFAULT_FLEET
from kgs_core.errors import ConfigError
from kgs_core.lake.files.stored_path import AnyPath, named_path
from kgs_core.system.transform_folder import load_client_settings

CONFIG = "KGS_CONFIG"
"""Names one kgs.yaml, or several with `os.pathsep` between; a group each."""
DEFAULT_CONFIG = Path("kgs.yaml")
PRUNE_EVENTS = "KGS_PRUNE_EVENTS"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """One group as Dagster knows it.

    Attributes:
        path: the file that it came from, absolute.
        suffix: of all its jobs, sensors and schedules; empty when there is no other group.
    """

    settings: Settings
    path: Path
    suffix: str

    @property
    def name(self) -> str:
        """The group's name, as in its topics and tables."""
        return self.settings.group

    @property
    def dagster_name(self) -> str:
        """The group's name where Dagster takes letters, digits and `_` only."""
        return _NOT_IN_NAMES.sub("_", self.name)

    @property
    def is_controlled_here(self) -> bool:
        """Whether Dagster decides who reads what; where another fleet is named, `kgs control` does.

        A rebalance run would take its right to write, and it ends then for good.
        """
        return self.settings.fleet == DEFAULT_FLEET

    def key(self, *parts: str) -> dg.AssetKey:
        """The key of one of its assets."""
        return dg.AssetKey([self.name, *parts])


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """Settings of experiments: where they keep their results, and where loads come from.

    Attributes:
        folder: None: `experiments` in the storage of Dagster's instance.
        recordings: where files of recorded loads lie; None: none can be registered.
    """

    folder: AnyPath | None = None
    recordings: AnyPath | None = None


def groups() -> tuple[GroupConfig, ...]:
    """Every group that is configured; none is no mistake.

    Raises:
        ConfigError: a file that cannot be used, or two files for one group.
    """
    named = [Path(path) for path in os.environ.get(CONFIG, "").split(os.pathsep) if path]
    paths = named or [DEFAULT_CONFIG] * DEFAULT_CONFIG.is_file()
    return name_groups([(load_client_settings(path.absolute(), os.environ), path.resolve()) for path in paths])


def prunes_events() -> bool:
    """Whether old events are deleted in Dagster's own tables; a ConfigError for what is neither 0 nor 1."""
    found = os.environ.get(PRUNE_EVENTS) or "0"
    if found not in ("0", "1"):
        raise ConfigError([f"{PRUNE_EVENTS}: {found!r}: write 1 to have old events deleted, or leave it out"])
    return found == "1"


def name_groups(loaded: Sequence[tuple[Settings, Path]]) -> tuple[GroupConfig, ...]:
    """Groups with the names that keep them apart in Dagster; a ConfigError for two that cannot be told apart."""
    found = [GroupConfig(settings, path, "") for settings, path in loaded]
    by_name: dict[str, GroupConfig] = {}
    for group in found:
        other = by_name.setdefault(group.dagster_name, group)
        if other is not group:
            raise ConfigError(
                [
                    f"{CONFIG}: groups '{other.name}' of {other.path} and '{group.name}' of {group.path} are one to "
                    "Dagster: give one another name, or name one file only"
                ]
            )
    if len(found) == 1:
        return tuple(found)
    return tuple(GroupConfig(group.settings, group.path, f"_{group.dagster_name}") for group in found)


def runs_are_pods(group: GroupConfig) -> bool:
    """Whether the environment is that of a pod, or the group has a setting for pods. The instance is not known yet."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) or group.settings.kubernetes != KubernetesSettings()


def experiment_settings() -> ExperimentSettings:
    """What the environment says of experiments; a ConfigError for an address that cannot be."""
    return ExperimentSettings(_place_named("KGS_EXPERIMENTS"), _place_named("KGS_EXPERIMENTS_RECORDINGS"))


def _place_named(variable: str) -> AnyPath | None:
    named = os.environ.get(variable)
    try:
        found = named_path(named) if named else None
    except ConfigError as e:
        raise ConfigError([f"{variable}: {e}"]) from None
    return found.absolute() if isinstance(found, Path) else found
