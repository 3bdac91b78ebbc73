"""`kgs status`: how a group is shown."""

import json
import os
import signal
from dataclasses import replace

import pytest
from click.testing import CliRunner

from kgs_core.cli.group.status import StatusScreen
from kgs_core.cli.group.status_table import status_table
from kgs_core.cli.main import cli
from kgs_core.config.packing import PackingSettings
from kgs_core.errors import TransientError
from kgs_core.group.protocol import Change, DesiredState, DesiredVersion, Idle, Incarnation, RunState, Target, WorkDone
from kgs_core.group.view.rolling_replacement import ReplacementWait
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.planning.learnt_capacity import Learnt, capacity_of
from kgs_core.planning.load import Load
from kgs_core.reporting.consumer_rows import ConsumerRow, ExternalFacts
from kgs_core.reporting.status_json import status_values
from tests.a_status import a_status
from tests.configuration import YAML
from tests.rendered import lines_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)
CHANGES = (Change(0, "started", 0, 0.0, 1, 4.25), Change(60_000, "consumer above consumer_capacity: 1", 1, 0.4, 2))
TARGET = Target("mwf", {A: ONE, B: TWO}, (THREE,), {}, 1e6, 0.4, "the load", (), (), 60_000, history=CHANGES)
LINES = (
    ConsumerRow(ONE, Incarnation("0123456789"), "reading", (A, B), 1.5e6, 2e6, 12, 0.4, {A: "poison"}, 0.1, 1.0),
    ConsumerRow(TWO, None, "not there", needs_attention=True),
)


def group(**changes):
    found = {
        "target": TARGET,
        "current": {A: ONE, B: ONE},
        "waiting": {B: "it has not joined"},
        "consumers": LINES,
        "lag": 12,
        "facts": ExternalFacts(Load({}, age_s=1.0)),
    }
    return a_status(**{**found, **changes})


def shown(found, width=160):
    return [line for line in lines_of(status_table(found), width) if line]


def words(found, first):
    """The words of the line that begins with `first`."""
    (line,) = [line for line in shown(found) if line.startswith(first)]
    return line.split()


def test_the_headline_says_how_far_the_group_is():
    reading = replace(LINES[0], stopped={})
    assert shown(group(consumers=(reading,)))[0] == (
        "group g | changing: waiting for 1 partition | 2 partitions on 1 consumer | 1 topic consumed | lag 12 records"
    )
    assert "| changing: consumers start or end |" in shown(group(consumers=(reading,), waiting={}))[0]
    assert "| converged |" in shown(group(consumers=(reading,), is_converged=True, waiting={}))[0]
    assert (
        "| no target yet | 0 partitions on 0 consumers | 0 topics consumed | lag ? records"
        in shown(group(target=None, current={}, lag=None, consumers=()))[0]
    )


def test_a_group_that_is_idle_says_since_when_and_whether_there_is_something_to_read():
    idle = replace(TARGET, assignment={}, speeds={}, idle=Idle(60_000, {A: 3, B: 0}, {"t": "1"}))
    found = group(target=idle, current={}, waiting={}, consumers=(), lag=0)
    assert "| idle since 1970-01-01 00:01:00Z: nothing to read | 0 partitions on 0 consumers |" in shown(found)[0]
    assert "00:01:00Z: records to read |" in shown(replace(found, lag=5))[0]
    assert status_values(found)["idle_since_ms"] == 60_000
    paused = replace(found, desired_state=DesiredState(RunState.PAUSED, "me", 0))
    assert status_values(paused)["idle_since_ms"] is None


def test_a_group_of_which_something_stands_still_is_no_plain_converged():
    assert "| converged, but 1 of 2 partitions stopped |" in shown(group(is_converged=True, waiting={}))[0]


def test_a_consumer_has_its_load_lag_report_and_drains():
    line = words(group(), "1 ")
    assert line == ["1", "01234567", "2", "1.500", "2.000", "12", "0.4", "s", "ago", "0.1", "s", "1.0", "s", "reading"]
    assert words(group(), "2 ") == ["2", "not", "there"]


def test_what_is_not_known_is_no_number():
    unknown = ConsumerRow(THREE, Incarnation("abc"), "reading", (A,))
    assert words(group(consumers=(unknown,)), "3 ") == ["3", "abc", "1", "?", "?", "?", "reading"]


def test_a_controller_that_is_down_is_shown():
    lines = shown(group(controller_is_heard=False, facts=ExternalFacts(Load({}, age_s=125.0))))
    assert lines[1] == (
        "! the controller is down, or cannot measure (the last measurement is 125 s old): consumers keep "
        "reading what they own; see its log, or start `kgs control`"
    )
    assert "no measurement was published" in shown(group(controller_is_heard=False, facts=ExternalFacts()))[1]


def test_what_a_change_waits_for_and_the_last_changes_the_newest_first():
    lines = [line.split() for line in shown(group())]
    assert ["t:1", "1", "2", "it", "has", "not", "joined"] in lines
    newest = lines.index(["1970-01-01", "00:01:00Z", "1", "0.400", "2", "running", "?", *CHANGES[1].reason.split()])
    assert lines[newest + 1] == ["1970-01-01", "00:00:00Z", "0", "0.000", "1", "4.2", "s", "0.0", "started"]


def test_the_last_change_is_running_or_done_and_an_earlier_one_whose_end_nobody_saw_took_an_unknown_time():
    lines = [line.split() for line in shown(group(is_converged=True, waiting={}))]
    assert ["1970-01-01", "00:01:00Z", "1", "0.400", "2", "done", "?", *CHANGES[1].reason.split()] in lines
    history = (replace(CHANGES[0], duration_s=None), CHANGES[1])
    lines = [line.split() for line in shown(group(target=replace(TARGET, history=history)))]
    assert ["1970-01-01", "00:00:00Z", "0", "0.000", "1", "?", "?", "started"] in lines


def test_the_times_of_changes_are_shown_where_one_is_known():
    done = replace(CHANGES[0], duration_s=4.2, seen_s=0.5, decided_s=0.1, started_s=3.2)
    lines = [line.split() for line in shown(group(target=replace(TARGET, history=(done, CHANGES[1]))))]
    times = ["4.2", "s", "0.5", "s", "0.1", "s", "3.2", "s", "1.0", "s"]
    assert ["1970-01-01", "00:00:00Z", "0", "0.000", "1", *times, "0.0", "started"] in lines


WAITS = ReplacementWait("spare 3 to open t:0 before consumer 1 ends")
STOPPED = replace(WAITS, refused={A: "no rule fits"})
MANY = [TopicPartition("t", n) for n in range(7)]


def stands_still(stopped):
    """Consumer -> partition -> why."""
    rows = tuple(ConsumerRow(consumer, None, "reading", stopped=whys) for consumer, whys in stopped.items())
    return {"current": {tp: consumer for consumer, whys in stopped.items() for tp in whys}, "consumers": rows}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"desired_state": DesiredState(RunState.PAUSED, "me", 1000)},
         "paused: no consumer reads until `kgs resume` (by me, 1970-01-01 00:00:01Z)"),
        ({"desired_state": DesiredState(RunState.STOPPED, "me", 1000)},
         "stopped: all consumers end; `kgs resume` starts them again (by me, 1970-01-01 00:00:01Z)"),
        ({"wanted": DesiredVersion("2", "abcdef123456", "me", 0), "outdated": (ONE,)},
         "being replaced for version 2, configuration abcdef12: consumers 1"),
        ({"outdated": (ONE,), "replacement": WAITS}, str(WAITS)),
        ({"outdated": (ONE,), "replacement": STOPPED}, f"! {STOPPED}; all consumers keep reading"),
        ({"failures": {TWO: "5 rounds failed, last: boom"}},
         f"! consumer {TWO} has ended by an error: 5 rounds failed, last: boom"),
        ({}, "! t:0 is stopped at consumer 1: poison"),
        (stands_still({ONE: dict.fromkeys(MANY, "poison")}), "! t:0-6 are stopped at consumer 1: poison"),
        (stands_still({ONE: {A: "no rule"}, TWO: {B: "no rule"}}),
         "! t:0-1 are stopped at consumers 1, 2: no rule"),
        (stands_still({ONE: {tp: f"offset {tp.partition}" for tp in MANY}}),
         "! 2 more partitions for other reasons (--json has all)"),
    ],
)  # fmt: skip
def test_what_is_amiss_or_wanted_has_a_line_of_its_own(changes, line):
    assert line in shown(group(**changes), 400)


def test_json_of_a_replacement_that_has_stopped_and_of_a_failure():
    found = status_values(group(replacement=STOPPED, failures={TWO: "boom"}))
    assert found["replacement"] == {
        "waits_for": "spare 3 to open t:0 before consumer 1 ends",
        "refused": {"t:0": "no rule fits"},
    }
    assert found["failures"] == {str(TWO): "boom"}


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_no_word_and_no_number_is_broken_on_a_narrow_terminal(width):
    many = {TopicPartition("shop.orders", n): "held by 2@two" for n in range(12)}
    line = replace(LINES[0], lag=413_065, load=123_456_789.0, last_drain_s=0.1, max_drain_s=123.0)
    text = shown(group(consumers=(line,), waiting=many), width)
    said = {word for line in text for word in line.split()}
    assert {"consumer", "partitions", "load", "MB/s", "lag", "state", "reading"} <= said
    assert {"413,065", "123.457", "shop.orders:0-11", "moved", "Rscore", "0.400", "took", "reason"} <= said
    assert all(len(line) <= width for line in text)
    assert ({"reads", "2.000", "report", "ago"} <= said) == (width >= 80)
    assert ("incarnation" in said) == (width >= 100)
    assert sum("held by" in line for line in text) == 1, "what waits for the same is one row"


def test_what_others_wrote_is_shown_without_control_characters():
    evil = TopicPartition("t\x1b[2J", 0)
    line = replace(LINES[0], stopped={evil: "bad\x1b]0;owned\x07 value\u202e"})
    desired = DesiredState(RunState.PAUSED, "me\x1b[1A", 1000)
    found = group(
        current={evil: ONE},
        consumers=(line,),
        waiting={evil: "held\x9b"},
        desired_state=desired,
        wanted=DesiredVersion("2\x1b", "\x1b[0m", "me", 0),
    )
    text = "\n".join(shown(replace(found, outdated=(ONE,))))
    assert not {c for c in text if not c.isprintable() and c != "\n"}
    assert "! t\\x1b[2J:0 is stopped at consumer 1: bad\\x1b]0;owned\\x07 value\\u202e" in text


def test_into_a_pipe_the_width_is_that_of_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "70")
    with StatusScreen(json_=False, in_place=False) as screen:
        screen.show(group())
    narrow = capsys.readouterr().out.splitlines()
    monkeypatch.delenv("COLUMNS")
    with StatusScreen(json_=False, in_place=False) as screen:
        screen.show(group())
    wide = capsys.readouterr().out.splitlines()
    assert max(map(len, narrow)) <= 70 < max(map(len, wide)) <= 160


def test_watching_waits_for_a_kafka_that_is_away_and_one_look_does_not(tmp_path, monkeypatch):
    """The third answer ends the watching, as Ctrl-C does."""
    (tmp_path / "kgs.yaml").write_text(YAML)
    asked = []

    def no_answer(*_):
        asked.append(1)
        if len(asked) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        raise TransientError("Kafka 127.0.0.1:9: no answer", 0.0)

    monkeypatch.setattr(KafkaAdmin, "describe", no_answer)
    arguments = ["status", "--config", str(tmp_path / "kgs.yaml")]
    result = CliRunner().invoke(cli, [*arguments, "--watch"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "waiting: Kafka 127.0.0.1:9: no answer\n"
    once = CliRunner().invoke(cli, arguments)
    assert (once.exit_code, once.stderr) == (1, "error: Kafka 127.0.0.1:9: no answer\n")


@pytest.mark.parametrize(("share", "mark"), [(0.7, "! "), (1.5, "")])
def test_a_capacity_that_is_off_is_shown_beside_the_configured_one(share, mark):
    packing = PackingSettings(packing_capacity_bytes_per_s=1_500_000, consumer_capacity_bytes_per_s=2_000_000)
    learnt = Learnt(2.3e6 * share, "1", "a", "x", 1, 300.0, 1.0, 51_000_000)
    lines = shown(group(capacity=capacity_of(packing, learnt, None)))
    assert any(line.startswith(f"{mark}consumers have read {abs(share - 1):.0%} ") for line in lines)
    assert any(line.startswith("consumer_capacity 2 MB/s as configured") for line in lines)


def test_names_of_topics_are_no_markup():
    tp = TopicPartition("[red]", 0)
    lines = shown(group(waiting={tp: "[bold]"}, target=None))
    assert any("[red]:0" in line and "[bold]" in line for line in lines)


JSON_KEYS = (
    "group controller converged target current topics_consumed consumers lag known_lag lag_unknown_partitions changes "
    "waiting plan desired_state wanted outdated replacement failures measured_age_s problems bad_shares capacity "
    "forced_only apply_asked_by quiet_until rscore_left idle_since_ms complete newest_rows"
)
CONSUMER_JSON = {"id": 1, "incarnation": "0123456789", "state": "reading", "partitions": ["t:0", "t:1"], "load": 1.5e6,
    "bytes_per_s": 2e6, "lag": 12, "known_lag": None, "lag_unknown_partitions": 0, "report_age_s": 0.4,
    "stopped": {"t:0": "poison"}, "last_drain_s": 0.1, "max_drain_s": 1.0, "version": "",
    "config_hash": "", "zone": None, "same_zone_bytes": None, "cross_zone_bytes": None}  # fmt: skip
CHANGE_JSON = {"time_ms": 60_000, "reason": "consumer above consumer_capacity: 1", "moved": 1, "rscore": 0.4,
    "consumers": 2, "duration_s": None, "seen_s": None, "decided_s": None, "started_s": None, "handed_over_s": None,
    "iterations": None}  # fmt: skip
PLAN_JSON = {"algorithm": "mwf", "rscore": 0.4, "reason": "the load", "time_ms": 60_000, "capacity_bytes_per_s": 1e6,
    "spares": [3], "quarantined": []}  # fmt: skip


def test_zones_are_shown_where_one_is_known():
    assert not any("zone" in line for line in shown(group()))
    read = replace(LINES[0], zone="eu-1a", work=WorkDone(same_zone_bytes=300, cross_zone_bytes=100))
    unsaid = replace(LINES[0], consumer=THREE, zone="eu-1b", work=WorkDone())
    found = group(consumers=(read, LINES[1], unsaid))
    assert words(found, "1 ")[3:7] == ["1.500", "2.000", "eu-1a", "25%"]
    assert words(found, "3 ")[5:7] == ["eu-1b", "?"]
    assert words(found, "2 ") == ["2", "not", "there"]


def test_json_has_the_promised_keys():
    asked = DesiredState(RunState.PAUSED, "me", 1000)
    found = json.loads(json.dumps(status_values(group(desired_state=asked, wanted=DesiredVersion("2", "a", "me", 0)))))
    assert list(found) == JSON_KEYS.split()
    assert (found["target"], found["current"]) == ({"t": {"0": 1, "1": 2}}, {"t": {"0": 1, "1": 1}})
    assert (found["topics_consumed"], found["lag"], found["waiting"]) == (1, 12, {"t:1": "it has not joined"})
    assert (found["converged"], found["controller"]) == (False, "heard")
    assert found["consumers"][0] == CONSUMER_JSON
    assert found["changes"][1] == CHANGE_JSON
    assert found["plan"] == PLAN_JSON
    assert found["desired_state"] == {"state": "paused", "by": "me", "time_ms": 1000}
    assert found["wanted"] == {"version": "2", "config_hash": "a", "by": "me", "time_ms": 0}


def test_json_has_null_for_what_is_not_known():
    found = status_values(group(target=None, lag=None, facts=ExternalFacts()))
    assert [found[key] for key in ("target", "lag", "plan", "desired_state", "wanted", "measured_age_s")] == [None] * 6
    assert [found["consumers"][1][key] for key in ("incarnation", "load", "lag", "report_age_s")] == [None] * 4


@pytest.mark.usefixtures("here")
def test_without_a_configuration_it_is_refused():
    result = CliRunner().invoke(cli, ["status"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: kgs.yaml: no such file: `kgs init` makes one, or name another file\n"


def test_topics_with_too_many_bad_records_are_in_the_headline_and_listed_one_by_one():
    lines = shown(group(is_converged=True, waiting={}, bad_shares={"clicks": 1.0, "orders": 0.62}))
    assert lines[0].endswith("| lag 12 records | too many bad records in 2 topics")
    text = " ".join(lines)
    assert "! topic clicks: all of its newest records are dead letters: column `error` of" in text
    assert "! topic orders: 62 % of its newest records" in text
    assert "bad records" not in " ".join(shown(group()))
    assert status_values(group(bad_shares={"orders": 0.62}))["bad_shares"] == {"orders": 0.62}
