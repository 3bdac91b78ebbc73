"""Factory of the lake, and the trial of its store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kgs_core.config.settings import LakeSettings
from kgs_core.lake.delta.pace import CommitWay
from kgs_core.ports import Lake

if TYPE_CHECKING:
    from kgs_core.lake.delta.store_check import StoreFinding


def open_lake(settings: LakeSettings, consumer: str = "", commits: CommitWay = "auto") -> Lake:
    """The lake that the settings name; the store is asked nothing yet.

    Args:
        consumer: who commits, for those who read the tables' logs.
        commits: forced by tests and measurements alone.
    """
    from kgs_core.lake.delta.delta_lake import DeltaLake  # the library is loaded where a lake is opened

    return DeltaLake(settings, consumer, commits)


def try_store(settings: LakeSettings) -> Iterator["StoreFinding"]:
    """Everything that consumers and maintenance ask of the lake's store, one after the other."""
    from kgs_core.lake.delta.store_check import check_store
    from kgs_core.lake.files.storage import Storage

    return check_store(Storage.of(settings))
