"""kgs.example.yaml is the reference of all settings, so it has them all, with their true defaults."""

import re
from pathlib import Path

import pytest

from kgs_core.config.file import load_settings
from kgs_core.config.rule.field_types import FIELD_TYPES
from kgs_core.config.rule.section import Section
from kgs_core.config.settings import (
    ConsumerSettings,
    KubernetesSettings,
    MembershipSettings,
    MonitorSettings,
    PackingSettings,
    SparkSettings,
)

EXAMPLE = Path(__file__).parents[3] / "kgs.example.yaml"


@pytest.fixture(scope="module")
def settings():
    return load_settings(EXAMPLE, {})


def sections(model=Section):
    for section in model.__subclasses__():
        yield section
        yield from sections(section)


def test_the_example_loads_with_an_empty_environment(settings):
    assert settings.lake.root == str(EXAMPLE.parent / "lake")


@pytest.mark.parametrize(
    ("section", "key"),
    [(section.__name__, info.alias or name) for section in sections() for name, info in section.model_fields.items()],
)
def test_every_setting_is_in_the_example(section, key):
    assert re.search(rf"^ *(# *)?(- )?{key}:", EXAMPLE.read_text(), re.MULTILINE), section


def test_values_shown_are_the_defaults(settings):
    assert settings.consumer == ConsumerSettings()
    assert settings.spark == SparkSettings()
    assert settings.monitor == MonitorSettings()
    assert settings.packing == PackingSettings()
    assert settings.membership == MembershipSettings()
    assert settings.kubernetes == KubernetesSettings()
    assert settings.fleet == type(settings).model_fields["fleet"].default
    shown = settings.lake.model_dump(exclude={"root"})
    assert shown == {
        name: type(settings.lake).model_fields[name].get_default(call_default_factory=True) for name in shown
    }


def test_ranges_in_the_comments_are_the_models():
    text = re.sub(r"\n *# ", " ", EXAMPLE.read_text())
    lake = type(load_settings(EXAMPLE, {}).lake)
    for section in (ConsumerSettings, MembershipSettings, MonitorSettings, PackingSettings, lake):
        for name, info in section.model_fields.items():
            bounds = [
                (m.ge, n.le) for m in info.metadata for n in info.metadata if hasattr(m, "ge") and hasattr(n, "le")
            ]
            for low, high in bounds:
                (comment,) = re.findall(rf"([^\n]*)\n +{name}:", text)
                assert f"{low} to {high}" in comment, name


def test_every_type_of_a_field_is_named():
    assert f"Types: {' '.join(FIELD_TYPES)}." in re.sub(r"\n *# ", " ", EXAMPLE.read_text())


def test_commented_examples_load_too(tmp_path):
    """Taking the comment signs off must not lead into an error message."""
    text = EXAMPLE.read_text()
    text = re.sub(r"^  (client|storage_options|settings): \{\}$", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"^( *)# (client|storage_options|settings|transform_arrow)(: ?\S*)$",
        r"\1\2\3",
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(r"^  #   ([a-z][a-z._0-9]*: \S+)$", r"    \1", text, flags=re.MULTILINE)
    (tmp_path / "kgs.yaml").write_text(text)
    environ = {"KAFKA_PASSWORD": "a", "AWS_ACCESS_KEY_ID": "b", "AWS_SECRET_ACCESS_KEY": "c"}
    settings = load_settings(tmp_path / "kgs.yaml", environ)
    assert settings.kafka.client["sasl.password"] == "a"
    assert len(settings.lake.storage_options) == 4
    assert settings.spark.settings == {"spark.driver.memory": "1g"}
    assert settings.topics[0].transform_arrow == "my_package.clean:departures"
