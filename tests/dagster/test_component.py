"""Groups as components in a project's folder of definitions."""

import pytest
from dagster.components.testing import create_defs_folder_sandbox

from kgs_core.errors import ConfigError
from kgs_dagster.component import GroupComponent
from tests.configuration import text_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),  # Dagster's own
    pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning"),
]
TYPE = "kgs_dagster.component.GroupComponent"


def put(project, name, **attributes):
    """A folder with a kgs.yaml and the component that names it."""
    contents = {"type": TYPE, "attributes": attributes}
    folder = project.scaffold_component(GroupComponent, name, defs_yaml_contents=contents)
    (folder / "kgs.yaml").write_text(text_of(group=name, kafka="{bootstrap_servers: 'localhost:1'}"))


def test_two_groups_and_their_experiments_are_one_projects_definitions():
    with create_defs_folder_sandbox() as project:
        put(project, "sales", experiments=True)
        put(project, "web-shop")
        with project.build_all_defs() as defs:
            repository = defs.get_repository_def()
    sensors = {each.name for each in repository.sensor_defs}
    assert {"partition_load_sensor_sales", "partition_load_sensor_web_shop", "workloads_sensor"} <= sensors
    assert {key.path[0] for key in repository.asset_graph.get_all_asset_keys()} >= {"sales", "web-shop", "experiments"}


def test_a_configuration_that_is_not_there_is_named():
    with create_defs_folder_sandbox() as project:
        put(project, "sales", config="other.yaml")
        with pytest.raises(Exception, match="sales") as found, project.build_all_defs():
            pass
    assert isinstance(found.value.__cause__, ConfigError)
    assert "other.yaml" in str(found.value.__cause__)
