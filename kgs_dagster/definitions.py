"""What Dagster loads. Sensors, jobs and assets join here as they are built."""

from dagster import Definitions

defs = Definitions()
