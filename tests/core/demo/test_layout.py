"""Configuration, commands and environment of the demonstration's processes."""

import json

from kgs_core.config import parse_settings
from kgs_core.demo.layout import Layout
from kgs_core.demo.replay import TOPICS, open_replay


def test_configuration_fits_what_is_produced(tmp_path):
    layout = Layout(tmp_path, 864.0)
    settings = parse_settings(layout.configuration("127.0.0.1:9092").encode(), "kgs.yaml", {})
    seen = set()
    for record in open_replay().due(0, 40):
        assert set(json.loads(record.value)) == set(settings.rule_of(record.topic).fields)
        seen.add(record.topic)
    assert seen == set(TOPICS)


def test_noon_needs_more_consumers_than_the_night_and_no_more_than_there_may_be(tmp_path):
    """About 0.6 MB/s as Kafka stores it at the peak; next to nothing at night."""
    packing = parse_settings(Layout(tmp_path).configuration("127.0.0.1:9092").encode(), "kgs.yaml", {}).packing
    assert 2 < 600_000 / packing.packing_capacity_bytes_per_s <= packing.max_consumers


def test_commands_and_environment(tmp_path):
    layout = Layout(tmp_path, 864.0)
    command = layout.control_command(end_with=4711)
    assert command[4:] == [
        "control", "--config", f"{tmp_path}/kgs.yaml", "--log-dir", f"{tmp_path}/consumers", "--end-with", "4711",
    ]  # fmt: skip
    assert "864" in layout.generate_command("h:1")
    environ = layout.environ({"PATH": "p", "KGS_CONFIG": "c", "KGS_SET_LAKE__ROOT": "s3://real", "KGS_CACHE": "k"})
    assert {"PATH", "KGS_CACHE"} <= set(environ)
    assert not {"KGS_CONFIG", "KGS_SET_LAKE__ROOT"} & set(environ)


def test_compiled_modules_are_kept_in_the_cache_where_they_are_not_wanted_beside_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("KGS_CACHE", str(tmp_path / "cache"))
    layout = Layout(tmp_path)
    inner = layout.environ({"PYTHONDONTWRITEBYTECODE": "1"})
    assert "PYTHONDONTWRITEBYTECODE" not in inner
    assert inner["PYTHONPYCACHEPREFIX"] == str(tmp_path / "cache" / "bytecode")
    assert layout.environ({"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/p"})["PYTHONPYCACHEPREFIX"] == "/p"
    assert "PYTHONPYCACHEPREFIX" not in layout.environ({})
