"""`kgs prepare`: what it makes, without making it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from kgs_core.cli.local.prepare import prepare


@pytest.mark.parametrize(("options", "broker"), [([], True), (["--no-broker"], False)])
def test_an_image_of_consumers_needs_no_broker(monkeypatch, options, broker):
    made = []
    for module, name in (
        ("embedded_kafka.cluster", "prepare_kafka"), ("spark.class_archive", "build_archive"),
    ):  # fmt: skip
        monkeypatch.setattr(f"kgs_core.{module}.{name}", lambda *_, name=name: made.append(name) or Path(name))
    result = CliRunner().invoke(prepare, options)
    assert result.exit_code == 0, result.output
    assert ("prepare_kafka" in made) is broker
    assert "build_archive" in made
    assert "search for packings: compiling" in result.output
