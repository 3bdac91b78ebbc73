"""The job that approves a plan, run by a real instance of Dagster."""

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.reporting.waiting_plan import WaitingPlan
from kgs_core.runtime.approve import Approved
from kgs_dagster.jobs.apply_plan import PLAN, apply_plan_job
from tests.dagster.groups import group

WAITING = WaitingPlan("abc", 3, "mwf", "why", 0.2, 2, 1, (), 60.0, may_be_approved=True)


@pytest.fixture
def run(instance):
    """A run with this answer: its result, its tags, and who has approved what."""

    def execute(answer):
        asked = []

        def approve(settings, plan_id, by):
            asked.append((settings.group, plan_id, by))
            if isinstance(answer, Exception):
                raise answer
            return answer

        result = apply_plan_job(group(), approve).execute_in_process(
            run_config={"ops": {"approve_plan": {"config": {"plan": "abc"}}}}, instance=instance, raise_on_error=False
        )
        return result, instance.get_run_by_id(result.run_id).tags, asked

    return execute


def test_it_approves_what_its_configuration_names(run):
    result, tags, asked = run(Approved(WAITING, is_new=True))
    assert result.success
    assert asked == [(group().settings.group, "abc", f"dagster run {result.run_id[:8]}")]
    assert tags[PLAN] == "abc"


def test_one_that_was_carried_out_is_no_failure(run):
    assert run(Approved(None, is_new=False))[0].success


def test_a_refusal_fails_the_run_with_its_reason(run):
    result, _, _ = run(UnsafeError("plan abc is not approved: it has expired"))
    assert not result.success
    (failed,) = [e for e in result.all_events if e.is_step_failure]
    assert "it has expired" in str(failed.event_specific_data)
