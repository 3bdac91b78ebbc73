"""`kgs pause`, `resume`, `stop`, `replace`: what waiting for them means, and what is asked first."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from kgs_core.cli.group import operator_progress
from kgs_core.cli.group.operator_progress import applied, has_come, is_applied, is_replaced, wait_for
from kgs_core.cli.main import cli
from kgs_core.errors import PermanentError, TransientError
from kgs_core.group.controller.plan_request import ASKED
from kgs_core.group.protocol import Change, DesiredState, Incarnation, RunState
from kgs_core.group.view.rolling_replacement import ReplacementWait
from kgs_core.kafka.admin import KafkaAdmin
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.reporting.consumer_rows import ConsumerRow
from tests.a_status import a_status
from tests.configuration import YAML
from tests.core.group.controller.two_readers import TARGET

A = TopicPartition("t", 0)
MINE = DesiredState(RunState.PAUSED, "me", 1)
ASKS = DesiredState(RunState.RUNNING, "me", 1, apply_ms=1)
READS = ConsumerRow(ConsumerId(1), Incarnation("one"), "reading", (A,), report_age_s=1.0)
GONE = ConsumerRow(ConsumerId(2), None, "not there", needs_attention=True)


def seen(**changes):
    return a_status(**{"desired_state": MINE, **changes})


def converged(found):
    return found.is_converged if found.desired_state == MINE else None


def test_waits_until_it_has_happened():
    looks = [seen(waiting={A: "held by 1@one"}), seen(is_converged=True)]
    wait_for(lambda: looks.pop(0), converged, 60)
    assert looks == []


def test_another_request_ends_the_waiting():
    with pytest.raises(PermanentError, match=r"group g: another request has come meanwhile \(by you\)"):
        wait_for(lambda: seen(is_converged=True, desired_state=DesiredState(RunState.RUNNING, "you", 2)), converged, 60)


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ({"waiting": {A: "consumer 1 is to let it go"}}, "pending: t:0 (consumer 1 is to let it go)"),
        (
            {"controller_is_heard": False, "waiting": {A: "x"}},
            "the controller is down, or cannot measure: see its log, or start `kgs control`",
        ),
        (
            {"controller_is_heard": False, "desired_state": replace(MINE, state=RunState.STOPPED)},
            "the controller is down, or cannot measure: see its log, or start `kgs control`; where none runs, "
            "`kgs control --end-now` ends the consumers",
        ),
        (
            {"waiting": {TopicPartition("t", n): "held by 1@one" for n in range(12)}},
            "pending: t:0-11 (held by 1@one)",
        ),
        (
            {"outdated": (ConsumerId(3),), "replacement": ReplacementWait("spare 2 to open t:0")},
            "the replacement waits for spare 2 to open t:0",
        ),
        (
            {"desired_state": replace(MINE, state=RunState.STOPPED), "consumers": (READS, GONE)},
            "not ended yet: consumer 1 (reading)",
        ),
        ({"desired_state": ASKS}, "the controller has not packed yet"),
        (
            {"desired_state": ASKS, "quiet_until": "20:00Z", "rscore_left": 0.5},
            "the controller has not packed yet, and only forced moves are made until 20:00Z; 0.500 Rscore may be "
            "moved within this hour",
        ),
        ({"consumers": (GONE,)}, "not joined yet: consumer 2 (not there)"),
        ({"outdated": (ConsumerId(3),)}, "still to be replaced: consumers 3"),
        ({}, "consumers start or end"),
    ],
)
def test_what_it_waited_for_in_vain_is_reported(lacking, said):
    with pytest.raises(TransientError) as caught:
        wait_for(lambda: seen(**lacking), lambda _: False, 0)
    assert str(caught.value) == f"not in 0 s: group g: {said}: the request stands; see `kgs status`"


def test_a_group_is_stopped_when_every_process_has_said_its_last_word():
    """That they were told to end is not enough: they may have a batch in hand, or be silent."""
    for state in ("retiring", "draining", "silent"):
        living = replace(READS, state=state, partitions=())
        assert not has_come(seen(is_converged=True, consumers=(living,)), RunState.STOPPED, 90.0)
    assert has_come(seen(is_converged=True, consumers=(replace(GONE, state="ended"),)), RunState.STOPPED, 90.0)


@pytest.mark.parametrize(("age_s", "is_over"), [(89.0, False), (91.0, True), (None, True)])
def test_who_has_been_silent_for_so_long_that_it_has_ended_itself_counts_as_ended(age_s, is_over):
    """Whether the death of a process on a machine that is gone is ever confirmed, nobody knows."""
    silent = replace(READS, state="silent", report_age_s=age_s)
    found = seen(consumers=(silent,), waiting={A: "consumer 1 is to let it go"})
    assert has_come(found, RunState.STOPPED, 90.0) is is_over


def test_a_group_is_paused_when_nobody_may_read():
    """One that is silent may still do so, though the controller waits for it no longer."""
    assert has_come(seen(is_converged=True, consumers=(READS,)), RunState.PAUSED, 90.0)
    silent = seen(is_converged=True, waiting={A: "consumer 1 is to let it go"})
    assert not has_come(silent, RunState.PAUSED, 90.0)


def test_a_group_is_replaced_when_nobody_is_outdated():
    assert is_replaced(seen(is_converged=True))
    assert not is_replaced(seen(is_converged=True, outdated=(ConsumerId(1),)))
    assert not is_replaced(seen())


def test_a_plan_that_was_asked_for_is_over_when_its_target_is_reached():
    request = DesiredState(RunState.RUNNING, "sam", 1, apply_ms=5)
    before, change = Change(1, "first", 0, 0.0, 2), Change(2, f"x: {ASKED}sam", 3, 0.25, 1)
    answered = replace(TARGET, applied_ms=5, history=(before, change, before))
    asked = seen(desired_state=request, target=TARGET)
    assert is_applied(asked, request) is False
    assert is_applied(seen(target=answered), request) is False
    assert is_applied(seen(target=answered, is_converged=True), request) is True, "whatever people want by now"
    assert is_applied(seen(target=TARGET), request) is None
    assert applied(seen(target=answered)) == change
    assert applied(seen(target=replace(answered, history=(before, replace(change, moved=0))))) is None


def test_what_is_waited_for_is_shown_once_for_each_change(capsys, monkeypatch):
    monkeypatch.setattr(operator_progress, "LOOK_EVERY_S", 0.0)
    looks = [seen(waiting={A: "held by 1@one"})] * 3 + [seen(outdated=(ConsumerId(2),)), seen(is_converged=True)]
    wait_for(lambda: looks.pop(0), converged, 60)
    assert capsys.readouterr().err.splitlines() == [
        "waiting: group g: pending: t:0 (held by 1@one)",
        "waiting: group g: still to be replaced: consumers 2",
    ]


def test_a_kafka_that_does_not_answer_is_waited_for(capsys, monkeypatch):
    monkeypatch.setattr(operator_progress, "LOOK_EVERY_S", 0.0)
    looks = [TransientError("Kafka b:9: no answer"), seen(is_converged=True)]

    def look():
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    wait_for(look, converged, 60)
    assert capsys.readouterr().err == "waiting: Kafka b:9: no answer\n"


def test_a_replacement_that_has_stopped_ends_the_waiting_with_its_reason(monkeypatch):
    """Not at the first look: what fails in passing is tried again by the spare."""
    monkeypatch.setattr(operator_progress, "LOOK_EVERY_S", 0.0)
    held = ReplacementWait("spare 2 to open t:0 before consumer 1 ends", {A: "no rule fits"})
    stuck = seen(outdated=(ConsumerId(1),), replacement=held)
    looks = [stuck, stuck, seen(is_converged=True)]
    wait_for(lambda: looks.pop(0), is_replaced, 60)
    monkeypatch.setattr(operator_progress, "REFUSED_FOR_S", 0.0)
    with pytest.raises(PermanentError, match=r"which it cannot: t:0: no rule fits\. All consumers keep reading"):
        wait_for(lambda: stuck, is_replaced, 60)


@pytest.mark.parametrize("command", [["stop", "--yes"], ["pause"], ["resume"], ["replace"]])
def test_a_command_waits_for_kafka_for_as_long_as_it_may(config, command, monkeypatch):
    """What nobody has heard of is not said to be asked for."""

    def no_answer(*_):
        raise TransientError("Kafka 127.0.0.1:9: describe topics: no answer", 0.1)

    monkeypatch.setattr(KafkaAdmin, "describe", no_answer)
    result = CliRunner().invoke(cli, [*command, "--config", config, "--timeout", "0.5"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "waiting: Kafka 127.0.0.1:9: describe topics: no answer",
        "error: not in 0 s: Kafka 127.0.0.1:9: describe topics: no answer",
    ]


@pytest.fixture
def config(tmp_path):
    (tmp_path / "kgs.yaml").write_text(YAML)
    return str(tmp_path / "kgs.yaml")


def test_a_stop_is_asked_for_first(config):
    """No answer is no yes: nothing is written, and Kafka, which is not there, is not asked."""
    result = CliRunner().invoke(cli, ["stop", "--config", config], input="n\n")
    assert result.exit_code == 1
    assert "End all consumers of group g? No consumer reads until `kgs resume` [y/N]" in result.stdout
    assert result.stderr == "Aborted!\n"
