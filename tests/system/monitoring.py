"""What the tests of the monitor share: short windows, and measuring until there is enough."""

from collections.abc import Callable
from typing import Any

import yaml

from kgs_core.config import Settings, parse_settings
from kgs_core.monitor.kafka.monitor import Monitor
from kgs_core.monitor.speeds import Measurement
from kgs_core.system.shutdown import StopFlag

MONITOR = {"window_s": 6.0}


def tree_of(bootstrap: str, prefix: str, client: dict[str, Any] | None = None, **monitor: Any) -> dict[str, Any]:
    return {
        "group": prefix.rstrip("."),
        "kafka": {"bootstrap_servers": bootstrap, "client": client or {}},
        "lake": {"root": "/nowhere"},
        "topics": [{"pattern": prefix.replace(".", r"\.") + ".*"}],
        "monitor": {**MONITOR, **monitor},
    }


def settings_of(bootstrap: str, prefix: str, client: dict[str, Any] | None = None, **monitor: Any) -> Settings:
    return parse_settings(yaml.safe_dump(tree_of(bootstrap, prefix, client, **monitor)).encode(), "kgs.yaml", {})


def run_until(monitor: Monitor, enough: Callable[[Measurement], object], timeout_s: float = 30) -> list[Measurement]:
    """All measurements up to one that is enough."""
    found: list[Measurement] = []
    stop = StopFlag()

    def show(measurement: Measurement) -> None:
        found.append(measurement)
        if enough(measurement) or measurement.reading.time_s > found[0].reading.time_s + timeout_s:
            stop.set()

    monitor.run(stop, show)
    assert enough(found[-1]), found[-1].speeds
    return found
