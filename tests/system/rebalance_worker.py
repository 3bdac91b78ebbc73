"""`python -m tests.system.rebalance_worker kgs.yaml CONFIG`: one rebalance run in this process, as a run worker has it.

With `tick` instead of a configuration it is a tick of the load sensor, as a code server has it. The instance is that of
DAGSTER_HOME. Prints what failed, and leaves with status 1, if anything did.
"""

import json
import sys
from pathlib import Path

import dagster as dg

from kgs_core.config.file import load_settings
from kgs_dagster.definitions import build_defs
from kgs_dagster.sensors.partition_load import partition_load_sensor
from kgs_dagster.settings import name_groups


def main(config_file: str, config: str) -> int:
    (group,) = name_groups([(load_settings(Path(config_file), {}), Path(config_file))])
    defs = build_defs(groups=[group])
    job = defs.resolve_job_def("rebalance_job")
    with dg.DagsterInstance.get() as instance:
        if config == "tick":
            partition_load_sensor(group).evaluate_tick(dg.build_sensor_context(instance=instance, definitions=defs))
            return 0
        result = job.execute_in_process(
            run_config={"resources": {"rebalance": {"config": json.loads(config)}}},
            instance=instance,
            raise_on_error=False,
        )
    for event in result.all_events:
        if event.is_step_failure:
            said = event.step_failure_data.user_failure_data
            print(event.step_key, said.description if said else event.step_failure_data.error)
    return 0 if result.success else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
