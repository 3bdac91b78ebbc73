"""What a demonstration consists of: its files, its configuration, the commands of its processes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from kgs_core.demo.replay import DEFAULT_TIME_FACTOR, WEATHER_TOPIC

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
    "phase": "string",
    "lat": "double",
    "lon": "double",
    "altitude_ft": "int",
    "progress": "double",
}
WEATHER_FIELDS = {
    "event_time": "timestamp",
    "airport": "string",
    "temp_f": "double",
    "dewpoint_f": "double",
    "humidity_pct": "double",
    "wind_dir_deg": "double",
    "wind_speed_mph": "double",
    "wind_gust_mph": "double",
    "precip_in": "double",
    "pressure_mbar": "double",
    "visibility_mi": "double",
}


@dataclass(frozen=True, slots=True)
class Scene:
    """One demonstration in one directory.

    Attributes:
        directory: absolute.
        consumers: how many.
        time_factor: simulated seconds per second.
    """

    directory: Path
    consumers: int = 2
    time_factor: float = DEFAULT_TIME_FACTOR

    @property
    def config_file(self) -> Path:
        """The configuration of the consumers."""
        return self.directory / "kgs.yaml"

    @property
    def tally_file(self) -> Path:
        """What the generator says of itself, every second."""
        return self.directory / "tally.json"

    @property
    def temporary(self) -> Path:
        """Where Spark keeps what it needs for as long as it runs."""
        return self.directory / "spark"

    def status_file(self, consumer: int) -> Path:
        """What a consumer says of itself, every second."""
        return self.directory / f"consumer-{consumer}.json"

    def log_file(self, name: str) -> Path:
        """What a process writes on stdout and stderr."""
        return self.directory / f"{name}.log"

    def configuration(self, bootstrap_servers: str) -> str:
        """The text of kgs.yaml."""
        tree = {
            "group": GROUP,
            "kafka": {"bootstrap_servers": bootstrap_servers},
            "lake": {"root": "lake"},
            "topics": [
                {"pattern": r"flights\.(ewr|jfk|lga)", "format": "json", "schema": POSITION_FIELDS},
                {"topic": WEATHER_TOPIC, "format": "json", "schema": WEATHER_FIELDS},
            ],
            "consumer": {"wait_time_s": 1.0},
        }
        return yaml.safe_dump(tree, sort_keys=False)

    def consume_command(self, consumer: int) -> list[str]:
        """Starts consumer 1, 2, ..."""
        share = f"{consumer}/{self.consumers}"
        status = str(self.status_file(consumer))
        rest = ["--id", str(consumer), "--share", share, "--status", status, "--config", str(self.config_file)]
        return [*_kgs(), "consume", *rest]

    def generate_command(self, bootstrap_servers: str) -> list[str]:
        """Starts the flight replay."""
        rest = ["--bootstrap-servers", bootstrap_servers, "--time-factor", f"{self.time_factor:g}"]
        return [*_kgs(), "generate", *rest, "--tally", str(self.tally_file)]

    def environ(self, outer: Mapping[str, str]) -> dict[str, str]:
        """The environment of the processes: the user's, but for settings that are meant for a lake of their own."""
        kept = {k: v for k, v in outer.items() if k != "KGS_CONFIG" and not k.startswith("KGS_SET_")}
        return kept | {"SPARK_LOCAL_DIRS": str(self.temporary), "PYTHONUNBUFFERED": "1"}


def _kgs() -> list[str]:
    """The command `kgs` of this very installation, wherever its script is."""
    return [sys.executable, "-c", "from kgs_core.cli.main import main; main()"]
