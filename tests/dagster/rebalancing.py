"""Rebalance runs in Dagster, on a simulated group."""

import dagster as dg

from kgs_dagster.definitions import build_defs
from kgs_dagster.resources import control_resources, group_options
from tests.dagster.groups import group as group_of
from tests.sim_group import SimGroup

PACKING = "{packing_capacity_bytes_per_s: 100, consumer_capacity_bytes_per_s: 120, spare_consumers: 0}"
TOPICS = "[{topic: orders}, {pattern: '.*'}]"
FOUR = {"a": 50, "b": 50, "c": 50, "d": 50}
GROWN = {"a": 90, "b": 90, "c": 50, "d": 50}


class Runs:
    """The job of one group over one simulated world."""

    def __init__(self, instance):
        self.instance = instance
        self.group = group_of(topics=TOPICS, packing=PACKING, membership="{group_management_timeout_s: 20}")
        self.sim = SimGroup(group_options(self.group))
        self.defs = build_defs(control_resources(self.group, connect=self.sim.connect), [self.group])

    def run(self, *steps, **config):
        """A whole run, or only some of its steps."""
        keys = [self.group.key(step) for step in steps]
        return self.defs.resolve_job_def("rebalance_job").execute_in_process(
            run_config={"resources": {"rebalance": {"config": config}}},
            instance=self.instance,
            asset_selection=keys or None,
            raise_on_error=False,
        )

    def recorded(self, result, step):
        """Metadata of one materialization as plain values; a table as a list of rows."""
        (event,) = [e for e in result.get_asset_materialization_events() if e.asset_key == self.group.key(step)]
        return {name: plain(value) for name, value in event.materialization.metadata.items()}


def plain(value):
    return [dict(row.data) for row in value.records] if isinstance(value, dg.TableMetadataValue) else value.value


def checks(result):
    """Name of each check -> whether it passed."""
    return {
        (evaluation.asset_key.path[-1], evaluation.check_name): evaluation.passed
        for evaluation in result.get_asset_check_evaluations()
    }


def failure(result):
    """Of the one step that failed: its name, and what a person is told."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    return event.step_key.split("__")[-1], data.user_failure_data.description if data.user_failure_data else None
