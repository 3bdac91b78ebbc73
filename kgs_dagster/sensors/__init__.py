"""The sensors of the control loop; those that go by the clock or after a failure are in `automation`."""

from kgs_dagster.sensors.partition_load import build_sensors

__all__ = ["build_sensors"]
