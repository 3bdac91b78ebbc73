"""Readings of partition sizes -> write speed of each partition. Pure: time is part of a reading."""

from kgs_core.monitor.speeds.measurement import Measure, Measurement, PartitionReading, PartitionSpeed, Reading, Verdict
from kgs_core.monitor.speeds.window import Window

__all__ = ["Measure", "Measurement", "PartitionReading", "PartitionSpeed", "Reading", "Verdict", "Window"]
