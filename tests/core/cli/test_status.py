"""`kgs status`: how a group is shown."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from kgs_core.cli.main import cli
from kgs_core.cli.status_json import status_values
from kgs_core.cli.status_table import status_table
from kgs_core.control.overview import ConsumerLine, Overview, Surroundings
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Change, Incarnation, RunState, Target, Wanted, Wish

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)
CHANGES = (Change(0, "started", 0, 0.0, 1, 4.25), Change(60_000, "consumer above consumer_capacity: 1", 1, 0.4, 2))
TARGET = Target("mwf", {A: ONE, B: TWO}, (THREE,), {}, 1e6, 0.4, "the load", (), (), 60_000, history=CHANGES)
LINES = (
    ConsumerLine(ONE, Incarnation("0123456789"), "reading", (A, B), 1.5e6, 2e6, 12, 0.4, {A: "poison"}, 0.1, 1.0),
    ConsumerLine(TWO, None, "not there", needs_attention=True),
)


def group(**changes):
    found = {
        "group": "g",
        "controller_is_heard": True,
        "target": TARGET,
        "current": {A: ONE, B: ONE},
        "is_converged": False,
        "waiting": {B: "it has not joined"},
        "consumers": LINES,
        "lag": 12,
        "surroundings": Surroundings(measured_age_s=1.0),
    }
    return Overview(**{**found, **changes})


def shown(found):
    console = Console(width=160, force_terminal=False)
    with console.capture() as captured:
        console.print(status_table(found), highlight=False)
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def words(found, first):
    """The words of the line that begins with `first`."""
    (line,) = [line for line in shown(found) if line.startswith(first)]
    return line.split()


def test_the_headline_says_how_far_the_group_is():
    assert shown(group())[0] == (
        "group g | changing: 1 partition not there yet | 2 partitions on 1 consumer | lag 12 records"
    )
    assert "| changing: consumers start or end |" in shown(group(waiting={}))[0]
    assert "| converged |" in shown(group(is_converged=True, waiting={}))[0]
    assert (
        "| no target yet | 0 partitions on 0 consumers | lag ? records"
        in shown(group(target=None, current={}, lag=None))[0]
    )


def test_a_consumer_has_its_load_lag_report_and_drains():
    line = words(group(), "1 ")
    assert line == ["1", "01234567", "2", "1.500", "2.000", "12", "0.4", "s", "ago", "0.1", "s", "1.0", "s", "reading"]
    assert words(group(), "2 ") == ["2", "not", "there"]


def test_what_is_not_known_is_no_number():
    unknown = ConsumerLine(THREE, Incarnation("abc"), "reading", (A,))
    assert words(group(consumers=(unknown,)), "3 ") == ["3", "abc", "1", "?", "?", "?", "reading"]


def test_what_stands_still_is_said_with_its_reason():
    assert "! t:0 stands still at consumer 1: poison" in shown(group())
    many = {TopicPartition("t", n): "poison" for n in range(7)}
    lines = shown(group(consumers=(ConsumerLine(ONE, Incarnation("i"), "reading", stopped=many),)))
    assert "! 2 more stand still at consumer 1 (--json has all)" in lines


def test_a_controller_that_is_down_is_said():
    lines = shown(group(controller_is_heard=False, surroundings=Surroundings(measured_age_s=125.0)))
    assert lines[1] == (
        "! the controller is down (of its measurements the last one is 125 s old): consumers go on with what they own; "
        "start `kgs control`"
    )
    assert "none was published" in shown(group(controller_is_heard=False, surroundings=Surroundings()))[1]


def test_what_a_change_waits_for_and_the_last_changes_the_newest_first():
    lines = [line.split() for line in shown(group())]
    assert ["t:1", "1", "2", "it", "has", "not", "joined"] in lines
    newest = lines.index(["1970-01-01", "00:01:00Z", "1", "0.400", "2", "running", *CHANGES[1].reason.split()])
    assert lines[newest + 1] == ["1970-01-01", "00:00:00Z", "0", "0.000", "1", "4.2", "s", "started"]


def test_the_last_change_is_running_or_done_and_an_earlier_one_whose_end_nobody_saw_took_an_unknown_time():
    lines = [line.split() for line in shown(group(is_converged=True, waiting={}))]
    assert ["1970-01-01", "00:01:00Z", "1", "0.400", "2", "done", *CHANGES[1].reason.split()] in lines
    history = (replace(CHANGES[0], duration_s=None), CHANGES[1])
    lines = [line.split() for line in shown(group(target=replace(TARGET, history=history)))]
    assert ["1970-01-01", "00:00:00Z", "0", "0.000", "1", "?", "started"] in lines


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.PAUSED, "paused: nobody reads until `kgs resume` (by me, 1970-01-01 00:00:01Z)"),
        (RunState.STOPPED, "stopped: all consumers end; `kgs resume` starts them again (by me, 1970-01-01 00:00:01Z)"),
    ],
)
def test_a_wish_is_said(state, said):
    assert said in shown(group(wish=Wish(state, "me", 1000)))


def test_who_is_being_replaced():
    lines = shown(group(wanted=Wanted("2", "abcdef123456", "me", 0), outdated=(ONE,)))
    assert "being replaced for version 2, configuration abcdef12: consumers 1" in lines


def test_names_of_topics_are_no_markup():
    tp = TopicPartition("[red]", 0)
    lines = shown(group(waiting={tp: "[bold]"}, target=None))
    assert any("[red]:0" in line and "[bold]" in line for line in lines)


def test_json_has_the_promised_keys():
    found = json.loads(json.dumps(status_values(group())))
    assert found["target"] == {"t": {"0": 1, "1": 2}}
    assert found["current"] == {"t": {"0": 1, "1": 1}}
    assert found["lag"] == 12
    assert found["consumers"][0] == {
        "id": 1,
        "incarnation": "0123456789",
        "state": "reading",
        "partitions": ["t:0", "t:1"],
        "load": 1.5e6,
        "bytes_per_s": 2e6,
        "lag": 12,
        "report_age_s": 0.4,
        "stopped": {"t:0": "poison"},
        "last_drain_s": 0.1,
        "max_drain_s": 1.0,
        "version": "",
        "config_hash": "",
    }
    assert found["changes"][1] == {
        "time_ms": 60_000,
        "reason": "consumer above consumer_capacity: 1",
        "moved": 1,
        "rscore": 0.4,
        "consumers": 2,
        "duration_s": None,
    }
    assert (found["converged"], found["controller"], found["waiting"]) == (
        False,
        "heard",
        {"t:1": "it has not joined"},
    )


def test_json_has_null_for_what_is_not_known():
    found = status_values(group(target=None, lag=None, surroundings=Surroundings()))
    assert [found[key] for key in ("target", "lag", "plan", "wish", "wanted", "measured_age_s")] == [None] * 6
    assert [found["consumers"][1][key] for key in ("incarnation", "load", "lag", "report_age_s")] == [None] * 4


def test_without_a_configuration_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGS_CONFIG", raising=False)
    result = CliRunner().invoke(cli, ["status"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: kgs.yaml: no such file: copy kgs.example.yaml, or name another file\n"
