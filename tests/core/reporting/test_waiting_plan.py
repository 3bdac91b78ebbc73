"""A plan that waits, as people are shown it."""

import json

import pytest

from kgs_core.controller.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Approval, ProposedPlan, Received, Target
from kgs_core.reporting.waiting_plan import waiting_plan

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
TARGET = Target("mwf", {A: ConsumerId(1), B: ConsumerId(2)}, (), {}, 100.0, 0.0, "", (), (), 0)
PLAN = ProposedPlan(
    "abc", 0, "mwf", {B: ConsumerId(1)}, (), {B: 20.0}, 0.2, 1, "why", 60.0, may_be_approved=True, time_ms=0
)


@pytest.fixture
def shown(packing):
    def build(*more, speeds=None, at_ms=1_000):
        view = GroupView().take_all([Received(TARGET, 0, 0), Received(PLAN, 1, 0), *more], 0.0)
        return waiting_plan(view, {A: 30.0, B: 25.0} if speeds is None else speeds, packing(), at_ms)

    return build


def test_it_says_what_changes_what_it_costs_and_for_how_long(shown):
    found = shown()
    assert (found.consumers_before, found.consumers_after, found.consumers_too_many) == (2, 1, 1)
    assert (found.rscore, found.expires_in_s, found.above_capacity) == (0.25, 59.0, 0.0)
    assert [(m.partition, m.source, m.destination, m.bytes_per_s) for m in found.moves] == [(B, 2, 1, 25.0)]
    assert "waits for `kgs approve abc`" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["id"] == "abc"


def test_what_is_not_known_is_not_zero(shown):
    found = shown(speeds={A: 30.0})
    assert (found.rscore, found.above_capacity, found.misfit) == (0.2, None, "")


def test_it_says_that_it_fits_no_more_and_who_has_approved_it(shown):
    assert "consumer 1 would be given more" in shown(speeds={A: 100.0, B: 25.0}).misfit
    assert shown(Received(Approval("abc", 1, "sam", 0), 0, 500)).approved_by == "sam"
    assert shown(Received(Approval("abc", 0, "sam", 0), 0, 500)).approved_by is None


def test_one_that_has_ended_is_not_shown(shown):
    assert shown(at_ms=60_000) is not None
    assert shown(at_ms=60_001) is None
    assert shown(Received(TARGET, 2, 700)) is None
