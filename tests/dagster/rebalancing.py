"""Rebalance runs in Dagster, on a simulated group."""

from kgs_core.runtime.controller_loop import controller_options
from kgs_dagster.definitions import build_defs
from kgs_dagster.resources import control_resources
from tests.dagster.groups import group as group_of
from tests.dagster.results import checked, recorded
from tests.sim_group import SimGroup

PACKING = "{packing_capacity_bytes_per_s: 100, consumer_capacity_bytes_per_s: 120, spare_consumers: 0}"
TOPICS = "[{topic: orders}, {pattern: '.*'}]"
FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}
GROWN = {"a": 90, "b": 90, "c": 50, "d": 50}


class Runs:
    """The job of one group over one simulated world."""

    def __init__(self, instance, topics=TOPICS, packing=PACKING):
        self.instance = instance
        self.group = group_of(topics=topics, packing=packing, membership="{start_timeout_s: 8}")
        self.sim = SimGroup(controller_options(self.group.settings))
        self.defs = build_defs(control_resources(self.group, connect=self.sim.connect), [self.group])

    def run(self, *steps, tags=None, **config):
        """A whole run, or only some of its steps."""
        return self.defs.resolve_job_def("rebalance_job").execute_in_process(
            run_config={"resources": {"rebalance": {"config": config}}},
            instance=self.instance,
            asset_selection=[self.group.key(step) for step in steps] or None,
            tags=tags,
            raise_on_error=False,
        )

    def run_at(self, load, *steps, **config):
        """The same, for a load that was measured just now."""
        return self.run(*steps, measurement_offset=self.sim.publish(**load), **config)

    def recorded(self, result, step):
        return recorded(result)[step]

    def check(self, *keys):
        return checked(self.defs, self.instance, *keys)
