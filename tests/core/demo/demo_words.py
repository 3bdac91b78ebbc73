"""Tables and records of a demonstration that is made up: one topic that is read, one of which nothing is known."""

from kgs_core.demo.snapshot import Produced
from kgs_core.lake.topics.stats import TableView
from kgs_core.model import TopicPartition

EWR = TableView("flights.ewr", "flights.ewr", 1500, 2_500_000, 7, 0, 9, {0: 1000, 1: 500}, {0: 1100, 1: 500})
JFK = TableView("flights.jfk", "flights.jfk")
EWR_0, EWR_1 = (TopicPartition("flights.ewr", n) for n in (0, 1))
PRODUCED = Produced({EWR_0: 1100, EWR_1: 500}, 0, 0, 60.0, True)
