"""Packing and replays for programs and notebooks: plain values in, frozen values out. `import kgs_core as kgs`.

What stands here is what `kgs simulate` and the controller use, with nothing of a cluster: no Kafka, Spark or Dagster is
imported or asked.
"""

from kgs_core.api.packing import Packing, pack
from kgs_core.api.replays import Comparison, Picture, read_speeds, simulate, stream

__all__ = ["Comparison", "Packing", "Picture", "pack", "read_speeds", "simulate", "stream"]
