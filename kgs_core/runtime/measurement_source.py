"""Port of whoever packs: a source of measurements."""

from typing import Protocol

from kgs_core.group.view.events import Measured


class MeasurementSource(Protocol):
    """Source of measurements, looked at again and again."""

    def newest(self) -> Measured | None:
        """The newest measurement, once; None when there is none to pack by since the last call.

        Raises:
            KgsError: it cannot be measured now; one that measures in the background raises nothing.
        """
