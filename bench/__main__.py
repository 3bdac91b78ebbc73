"""The entry point of `python -m bench`."""

import logging
import os
import signal
from pathlib import Path

import click

from bench.commands.capacity_conditions import bench_capacity
from bench.commands.debezium import bench_debezium
from bench.commands.events import bench_events
from bench.commands.handover import bench_handover
from bench.commands.ingest import bench_ingest
from bench.commands.lake import bench_lake
from bench.commands.memory import bench_memory
from bench.commands.monitor import bench_monitor
from bench.commands.outage import bench_outage
from bench.commands.packing import bench_packing
from bench.commands.reaction import bench_reaction
from bench.commands.readings import bench_readings
from bench.commands.reproduction import bench_reproduction
from bench.commands.scale import bench_scale
from bench.commands.steps import bench_steps
from bench.commands.topics import bench_topics
from kgs_core.cli.main import KgsGroup

COMMANDS = (
    *(bench_capacity, bench_debezium, bench_events, bench_handover, bench_ingest, bench_lake, bench_memory),
    *(
        bench_monitor,
        bench_outage,
        bench_packing,
        bench_reaction,
        bench_readings,
        bench_reproduction,
        bench_scale,
        bench_steps,
        bench_topics,
    ),
)


@click.group(
    "bench",
    cls=KgsGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
)
def bench_group() -> None:
    """Measure, and print what was measured."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kgs_core").setLevel("INFO")
    # Programs that are measured are modules of this folder, which is installed nowhere
    root, path = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = root if path is None else os.pathsep.join((root, path))
    for number in (signal.SIGTERM, signal.SIGINT):  # so that no GB stay in a folder; a shell's `&` ignores SIGINT
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    bench_group(prog_name="python -m bench")
