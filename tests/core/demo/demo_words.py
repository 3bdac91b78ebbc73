"""A demonstration that is made up: one topic that is read, one of which nothing is known; processes of the test's."""

import sys
from dataclasses import dataclass
from pathlib import Path

from kgs_core.demo.snapshot import Produced
from kgs_core.lake.topics.stats import TableView
from kgs_core.model import TopicPartition

EWR = TableView("flights.ewr", "flights.ewr", 1500, 2_500_000, 7, 0, 9, {0: 1000, 1: 500}, {0: 1100, 1: 500})
JFK = TableView("flights.jfk", "flights.jfk")
EWR_0, EWR_1 = (TopicPartition("flights.ewr", n) for n in (0, 1))
PRODUCED = Produced({EWR_0: 1100, EWR_1: 500}, 0, 0, 60.0, True)


@dataclass(frozen=True)
class ProgramLayout:
    """A layout whose controller and generator are a program of the test's."""

    directory: Path
    program: str
    time_factor: float = 432.0

    @property
    def consumer_logs(self):
        return self.directory / "logs"

    @property
    def config_file(self):
        return self.directory / "kgs.yaml"

    def control_command(self, end_with):
        return [sys.executable, "-c", self.program]

    def generate_command(self, bootstrap_servers):
        return [sys.executable, "-c", self.program]

    def log_file(self, name):
        return self.directory / f"{name}.log"
