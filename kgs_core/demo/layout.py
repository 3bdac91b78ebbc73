"""Layout of a demonstration: its files, its configuration, the commands of its processes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from kgs_core.accel.cache_dir import cache_directory
from kgs_core.demo.flights import MEASURED
from kgs_core.demo.replay import DEFAULT_TIME_FACTOR, TOPIC_OF, WEATHER_TOPIC
from kgs_core.fleet.local import kgs_command

GROUP = "flights-demo"
POSITION_FIELDS = {
    "event_time": "timestamp",
    "flight": "string",
    "carrier": "string",
    "tailnum": "string",
    "aircraft": "string",
    "origin": "string",
    "dest": "string",
    "dep_delay_min": "int",
    "ground_speed_kt": "int",
    "lat": "double",
    "lon": "double",
    "progress": "double",
}
WEATHER_FIELDS = {"event_time": "timestamp", "airport": "string", **dict.fromkeys(MEASURED.values(), "double")}


# A day passes in minutes, so everything that decides is faster than by default. The window holds just enough readings
# of Dagster's sensor, one a second, for a step to be followed. Noon needs three or four consumers of this capacity, the
# night one.
PACKING = {
    "packing_capacity_bytes_per_s": 160_000,
    "consumer_capacity_bytes_per_s": 200_000,
    "max_consumers": 4,
    "spare_consumers": 1,
    "sentinel_timeout_s": 15,
}
MONITOR = {"window_s": 15}
MEMBERSHIP = {
    "suspect_after_s": 10,
    "start_attempts": 10,  # people kill consumers here for the fun of it
}


@dataclass(frozen=True, slots=True)
class Layout:
    """One demonstration in one directory.

    Attributes:
        directory: absolute.
        time_factor: simulated seconds per second.
    """

    directory: Path
    time_factor: float = DEFAULT_TIME_FACTOR

    @property
    def config_file(self) -> Path:
        """The configuration of controller and consumers."""
        return self.directory / "kgs.yaml"

    @property
    def tally_file(self) -> Path:
        """What the generator says of itself, every second."""
        return self.directory / "tally.json"

    @property
    def temporary(self) -> Path:
        """Where Spark keeps what it needs for as long as it runs."""
        return self.directory / "spark"

    @property
    def consumer_logs(self) -> Path:
        """The folder of the consumers' logs where `kgs control` starts them."""
        return self.directory / "consumers"

    def log_file(self, name: str) -> Path:
        """What a process writes on stdout and stderr."""
        return self.directory / f"{name}.log"

    def configuration(self, bootstrap_servers: str) -> str:
        """The text of kgs.yaml."""
        tree: dict[str, object] = {
            "group": GROUP,
            "kafka": {"bootstrap_servers": bootstrap_servers},
            "lake": {"root": "lake"},
            # A rule each, though one pattern would do for the flights: Dagster shows a topic and a table per rule
            "topics": [
                *({"topic": topic, "format": "json", "schema": dict(POSITION_FIELDS)} for topic in TOPIC_OF.values()),
                {"topic": WEATHER_TOPIC, "format": "json", "schema": WEATHER_FIELDS},
            ],
            "consumer": {"wait_time_s": 1.0, "batch_timeout_s": 60},
            "monitor": MONITOR,
            "packing": PACKING,
            "membership": MEMBERSHIP,
        }
        return yaml.safe_dump(tree, sort_keys=False)

    def control_command(self, end_with: int) -> list[str]:
        """Starts the controller; its consumers end with the process `end_with`."""
        rest = ["--config", str(self.config_file), "--log-dir", str(self.consumer_logs)]
        return [*kgs_command(), "control", *rest, "--end-with", str(end_with)]

    def generate_command(self, bootstrap_servers: str) -> list[str]:
        """Starts the flight replay."""
        rest = ["--bootstrap-servers", bootstrap_servers, "--time-factor", f"{self.time_factor:g}"]
        return [*kgs_command(), "generate", *rest, "--tally", str(self.tally_file)]

    def environ(self, outer: Mapping[str, str]) -> dict[str, str]:
        """The environment of the processes: the user's, but for settings that are meant for a lake of their own.

        Every run of Dagster is a process that imports some thousand modules. Who wants no compiled ones beside the
        sources gets them in the cache: without any, each start would take three times as long.
        """
        kept = {k: v for k, v in outer.items() if k != "KGS_CONFIG" and not k.startswith("KGS_SET_")}
        if kept.pop("PYTHONDONTWRITEBYTECODE", ""):
            kept.setdefault("PYTHONPYCACHEPREFIX", str(cache_directory() / "bytecode"))
        return kept | {"SPARK_LOCAL_DIRS": str(self.temporary), "PYTHONUNBUFFERED": "1"}
