"""`kgs.plan`: the values of `kgs plan`, from a file, a mapping or a Series, and what it refuses."""

import json
import math
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from click.testing import CliRunner

import kgs_core as kgs
from kgs_core.cli.main import cli
from kgs_core.config import parse_settings
from kgs_core.errors import ConfigError, MeasurementError
from kgs_core.group.view.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.monitor.kafka import load, monitor
from kgs_core.planning.group import Group
from kgs_core.planning.load import Load
from kgs_core.runtime import group_status
from tests.configuration import YAML

PARTITIONS = [("t", n) for n in range(5)]
SPEEDS = dict(zip(PARTITIONS, [80.0, 40.0, 30.0, 250.0, 10.0], strict=True))
NOW = {("t", 0): 1, ("t", 1): 1, ("t", 2): 2, ("t", 9): 2}


@pytest.fixture
def here(here):
    """With the speeds and the assignment as files."""
    (here / "speeds.jsonl").write_text(
        json.dumps({"time": 1, "speeds": {"t": {str(n): s for (_, n), s in SPEEDS.items()}}})
    )
    (here / "now.json").write_text(json.dumps({"t": {str(n): c for (_, n), c in NOW.items()}}))
    return here


@pytest.mark.parametrize("compare", [None, "all"])
@pytest.mark.parametrize("algorithm", ["mwf", "search", None])
def test_values_are_those_of_the_command(here, compare, algorithm):
    (here / "kgs.yaml").write_text(YAML + "packing: {packing_capacity_bytes_per_s: 100, max_rscore_per_hour: 0.1}\n")
    options = ["--from", "speeds.jsonl", "--current", "now.json", "--json"]
    options += ["--compare", compare] if compare else []
    options += ["--algorithm", algorithm] if algorithm else []
    shown = CliRunner().invoke(cli, ["plan", *options])
    assert shown.exit_code == 0, shown.stderr
    given = {"compare": compare, "algorithm": algorithm}
    index = pd.MultiIndex.from_tuples(list(SPEEDS))
    for speeds, current in (
        (SPEEDS, NOW),
        (pd.Series(list(SPEEDS.values()), index), pd.Series(NOW)),
        ("speeds.jsonl", here / "now.json"),
    ):
        assert kgs.plan("kgs.yaml", speeds=speeds, current=current, **given).to_dict() == json.loads(shown.stdout)
    assert kgs.plan(speeds=SPEEDS, current=NOW, **given) == kgs.plan("kgs.yaml", speeds=SPEEDS, current=NOW, **given)


def test_a_plan_is_a_value_and_a_frame(here):
    found = kgs.plan(speeds=SPEEDS, current=NOW, capacity=100, algorithm="mwf", compare=None)
    assert (found.consumers, found.rscore, found.left_out, found.alternatives) == (3, 0.4, 1, ())
    assert [move.partition for move in found.moves] == [("t", 1)]
    frame = found.to_frame()
    assert frame["consumer"].to_dict() == found.assignment
    assert frame["bytes_per_s"].to_dict() == SPEEDS
    assert [*frame.index[frame["moves"]]] == [("t", 1)]
    assert "Rscore 0.4" in found._repr_html_()
    again = kgs.plan(speeds=SPEEDS, current=found.assignment, capacity=100, algorithm="search")
    assert again.moves == (), "its assignment is taken back"
    assert len(pd.DataFrame(again.alternatives)) == len(again.alternatives) > 10


def test_without_speeds_the_group_is_measured_and_its_target_is_where_it_begins(here, monkeypatch):
    """Without a broker: what the two look-ups would have given."""
    (here / "kgs.yaml").write_text(YAML + "packing: {packing_capacity_bytes_per_s: 100}\n")
    seen = []
    measured = {TopicPartition(*each): speed for each, speed in SPEEDS.items()}
    unknown = TopicPartition("t", 5)

    measurement = SimpleNamespace(known=measured, speeds=dict.fromkeys([*measured, unknown]))

    monkeypatch.setattr(monitor, "measure", lambda settings, progress: seen.append(settings.group) or measurement)
    monkeypatch.setattr(load, "measured_load", lambda *_: Load(measured, frozenset({unknown})))
    target = {TopicPartition(*each): ConsumerId(consumer) for each, consumer in {**NOW, ("t", 5): 2}.items()}
    monkeypatch.setattr(group_status, "load_group", lambda settings: (Group(target), 0.0, GroupView()))
    found = kgs.plan(compare=None)
    assert seen == ["g"]
    assert found.group == Group(target)
    assert found.assignment["t", 5] == 2, "of unknown speed: it stays"
    assert math.isnan(found.to_frame().loc[("t", 5), "bytes_per_s"])
    settings = parse_settings((here / "kgs.yaml").read_bytes(), "kgs.yaml", {})
    assert kgs.plan(settings, current=None, compare=None).group == Group()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"speeds": {"t:0": 1.0}}, ConfigError, "speeds: 't:0': write a partition as (topic, number)"),
        ({"speeds": {("t", "0"): 1.0}}, ConfigError, "speeds: ('t', '0'): write a partition as (topic, number)"),
        ({"speeds": {("t", 0): "fast"}}, ConfigError, "speeds: t:0: 'fast': give a number"),
        ({"speeds": {("t", 0): -1.0}}, MeasurementError, "packing: t:0: write speed -1.0: must be 0 or greater"),
        ({"speeds": "no.jsonl"}, ConfigError, "no.jsonl: no such file or directory: name another file"),
        ({"current": {("t", 0): 0}}, ConfigError, "current: t:0: 0: give the number of a consumer, 1 to 2147483647"),
        ({"current": {("t", 0): math.nan}}, ConfigError, "current: t:0: nan: give the number of a consumer"),
        ({"current": "no.json"}, ConfigError, "no.json: no such file or directory: name another file"),
        ({"algorithm": "best"}, ConfigError, "algorithm 'best': use one of nf, ff"),
        ({"capacity": 0}, ConfigError, "plan: capacity 0: give bytes/s, from 1 to 1e+12"),
        ({"capacity": math.nan}, ConfigError, "plan: capacity nan: give bytes/s, from 1 to 1e+12"),
        ({"speeds": None}, ConfigError, "plan: nothing to measure: give a configuration"),
        ({"config": "other.yaml"}, ConfigError, "other.yaml: no such file: `kgs init` makes one"),
    ],
)
def test_what_cannot_be_planned_is_named_in_one_line(here, wrong, error, words):
    with pytest.raises(error, match=re.escape(words)) as raised:
        kgs.plan(**{"speeds": SPEEDS, "capacity": 100.0, **wrong})
    assert "\n" not in str(raised.value)
