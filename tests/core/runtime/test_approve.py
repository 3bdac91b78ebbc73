"""What `kgs approve --wait` goes by: carried out, still held, or never."""

from dataclasses import replace

import pytest

from kgs_core.errors import UnsafeError
from kgs_core.protocol import Change, Target
from kgs_core.reporting.status import ExternalFacts, GroupStatus
from kgs_core.reporting.waiting_plan import WaitingPlan
from kgs_core.runtime.approve import is_carried_out

PLAN = WaitingPlan("abc", 3, "mwf", "why", 0.2, 2, 1, (), 60.0, may_be_approved=True, approved_by="sam")
REASON = "looking for a better packing: plan abc approved by sam"


def group(plan=PLAN, reason="first", *, is_converged=True):
    target = Target("mwf", {}, (), {}, 100.0, 0.0, reason, (), (), 0, history=(Change(0, reason, 1, 0.2, 1),))
    return GroupStatus("g", True, target, {}, is_converged, {}, (), None, ExternalFacts(), plan=plan)


def test_it_waits_until_all_is_where_it_belongs():
    found = [group(), group(plan=None, reason=REASON, is_converged=False), group(plan=None, reason=REASON)]
    assert [is_carried_out(each, PLAN) for each in found] == [False, False, True]
    assert not is_carried_out(group(replace(PLAN, misfit="it fits no more for now")), PLAN)


@pytest.mark.parametrize("now", [None, replace(PLAN, plan_id="other"), replace(PLAN, offset=5)])
def test_it_does_not_wait_for_what_has_ended(now):
    with pytest.raises(UnsafeError, match=r"plan abc was not carried out: .*the last change: partition without owner"):
        is_carried_out(group(now, "partition without owner: a:0"), PLAN)
