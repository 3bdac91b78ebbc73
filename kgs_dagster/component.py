"""A group as a component: four lines of YAML in a project of Dagster's."""

import os
from pathlib import Path

import dagster as dg
from pydantic import Field

from kgs_core.system.transform_folder import load_client_settings
from kgs_dagster.definitions import build_defs
from kgs_dagster.settings import GroupConfig


class GroupComponent(dg.Component, dg.Model, dg.Resolvable):
    """Everything of one group of kgs: its topics and tables as assets, its control loop, jobs, sensors, schedules.

    All names but those of assets end in the group's, so that a project may have several.
    """

    config: str = Field(default="kgs.yaml", description="The group's kgs.yaml, beside this file or absolute.")
    experiments: bool = Field(default=False, description="Also the experiments, once in all groups of a project.")

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The group's definitions; a ConfigError for a kgs.yaml that cannot be used."""
        path = Path(context.path, self.config).resolve()
        settings = load_client_settings(path, os.environ)
        name = GroupConfig(settings, path, "").dagster_name
        return build_defs(groups=[GroupConfig(settings, path, f"_{name}")], experiments=self.experiments)
