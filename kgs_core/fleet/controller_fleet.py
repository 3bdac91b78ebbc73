"""The fleet of `kgs control`: the port, what it is made from, and how it ends."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgs_core.config import Settings
from kgs_core.model import ConsumerId
from kgs_core.ports import Fleet


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of the command line.

    Attributes:
        consumers_end_with: process whose end ends the consumers; None: nobody's does.
    """

    config_file: Path
    log_dir: Path
    consumers_end_with: int | None = None


class ControllerFleet(Fleet, Protocol):
    """A fleet that can end all its consumers with the controller."""

    def end_all(self, timeout_s: float, interrupt: Callable[[], bool]) -> tuple[ConsumerId, ...]:
        """Ask all to drain and end; what is left after `timeout_s`, or when `interrupt` says so, is killed.

        Returns:
            The consumers that had to be killed.
        """


BuildFleet = Callable[[Settings, FleetOptions], ControllerFleet]
"""What makes the fleet of a group; it starts nothing, and finds what runs already. A `KgsError` says why it cannot."""
