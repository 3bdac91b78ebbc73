"""`kgs plan --apply`: what is asked, what is waited for, and what is printed of it."""

import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from kgs_core.api.plans import plan as make_plan
from kgs_core.cli.group.operator_commands import Operator
from kgs_core.group.controller.plan_request import ASKED
from kgs_core.group.protocol import Change, RunState
from tests.configuration import YAML
from tests.core.cli.group.test_operator_commands import seen
from tests.core.group.controller.two_readers import TARGET


@pytest.fixture
def group_that_runs(tmp_path, monkeypatch):
    """A group whose controller answers: what it was asked for, and what it does of its own."""
    (tmp_path / "kgs.yaml").write_text(YAML)
    asked = []
    load = {"speeds": {("t", 0): 60.0, ("t", 1): 50.0}, "capacity": 200.0}
    monkeypatch.setattr("kgs_core.cli.group.plan.make_plan", lambda *_, **__: make_plan(compare=None, **load))
    monkeypatch.setattr(Operator, "_append", lambda _, desired: asked.append(desired))
    monkeypatch.setattr("kgs_core.runtime.group_status.hears_controller", lambda _: True)

    class Watch(nullcontext):
        def look(self, *, with_lake):
            change = Change(1, f"x: {ASKED}sam", 3, 0.25, 1)
            target = replace(TARGET, applied_ms=asked[-1].apply_ms, history=(change,))
            return seen(target=target, desired_state=asked[-1], is_converged=True)

    monkeypatch.setattr("kgs_core.runtime.group_status.GroupWatch", Watch)
    return asked


def test_a_plan_is_carried_out_when_one_says_yes(kgs_plan, group_that_runs):
    assert kgs_plan("--apply").exit_code == 1
    assert group_that_runs == []
    result = kgs_plan("--apply", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "1 consumer of" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("group g: asked for: plan: ")
    (request,) = group_that_runs
    assert (request.state, request.apply_ms is None) == (RunState.RUNNING, False)
    lines = kgs_plan("--apply", "--yes", "--wait").stdout.splitlines()
    assert lines[-2:] == ["done", "3 partitions moved, Rscore 0.250, 1 consumers"]


def test_with_json_there_is_nothing_else_on_standard_output(kgs_plan, group_that_runs):
    found = [json.loads(kgs_plan("--apply", "--yes", "--json", *wait).stdout) for wait in ([], ["--wait"])]
    assert [each["applied"] for each in found] == [None, {"moved": 3, "rscore": 0.25, "consumers": 1}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--apply", "--capacity", 5), "--capacity: not with --apply"),
        (("--apply", "--current", "none"), "--current: not with --apply"),
        (("--wait",), "--wait: not without --apply"),
        (("--group", "x", "--apply"), "--apply: not with --group"),
        (("--group", "x", "--from", "f"), "--from: not with --group"),
        (("--bootstrap-servers", "b:1"), "--bootstrap-servers: not without --group"),
    ],
)
def test_what_does_not_go_with_it_is_refused(kgs_plan, arguments, said):
    result = kgs_plan(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
