"""Results that `kgs simulate --results` and `bench reproduction` have written, read back."""

from pathlib import Path

import pyarrow.parquet as pq

from kgs_core.experiments.results import CONDITIONS, SCHEMA, conditions_of, reading, replays_of
from kgs_core.simulation.comparison import Replayed
from kgs_core.simulation.replay import Conditions


def load_results(path: Path) -> tuple[list[Replayed], Conditions]:
    """What `save_results` wrote.

    Raises:
        ConfigError: no such file, or one of something else.
    """
    of_another_kind = "no results of kgs simulate in it: name a file that --results wrote"
    with reading(path, cure="name a file of results", of_another_kind=of_another_kind):
        table = pq.read_table(path)
        conditions = conditions_of(table.schema.metadata[CONDITIONS])
        return list(replays_of(table.select(SCHEMA.names))), conditions
