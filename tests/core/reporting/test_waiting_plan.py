"""A plan that waits, as people are shown it."""

import json

import pytest

from kgs_core.config.bill import BillSettings
from kgs_core.controller.group_view import GroupView
from kgs_core.model import ConsumerId, TopicPartition
from kgs_core.protocol import Approval, ProposedPlan, Received, Target
from kgs_core.reporting.waiting_plan import in_vain, waiting_plan

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
TARGET = Target("mwf", {A: ConsumerId(1), B: ConsumerId(2)}, (), {}, 100.0, 0.0, "", (), (), 0)
PLAN = ProposedPlan(
    "abc", 0, "mwf", {B: ConsumerId(1)}, (), {B: 20.0}, 0.2, 1, "why", 60.0, may_be_approved=True, time_ms=0
)


@pytest.fixture
def shown(packing):
    def build(*more, speeds=None, at_ms=1_000, **bill):
        view = GroupView().take_all([Received(TARGET, 0, 0), Received(PLAN, 1, 0), *more], 0.0)
        return waiting_plan(
            view, {A: 30.0, B: 25.0} if speeds is None else speeds, packing(), at_ms, BillSettings(**bill)
        )

    return build


def test_it_says_what_changes_what_it_costs_and_for_how_long(shown):
    found = shown()
    assert (found.consumers_before, found.consumers_after, found.consumers_too_many) == (2, 1, 1)
    assert (found.rscore, found.expires_in_s, found.above_capacity) == (0.25, 59.0, 0.0)
    assert [(m.partition, m.source, m.destination, m.bytes_per_s) for m in found.moves] == [(B, 2, 1, 25.0)]
    assert "waits for `kgs approve abc`" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["id"] == "abc"


def test_what_it_costs_to_wait_is_told_in_money_where_the_price_is_known(shown):
    found = shown(price_per_consumer_hour=0.25, currency="EUR")
    assert (found.cost_per_hour, found.to_dict()["cost_per_hour"]) == (0.25, 0.25)
    assert str(found).endswith("to wait costs 1 consumer hours an hour, 0.25 EUR")
    assert (shown().cost_per_hour, shown().money) == (None, "")


def test_what_is_not_known_is_not_zero(shown):
    found = shown(speeds={A: 30.0})
    assert (found.rscore, found.above_capacity, found.misfit) == (0.2, None, "")


def test_it_says_that_it_fits_no_more_and_who_has_approved_it(shown):
    assert "consumer 1 would be given more" in shown(speeds={A: 100.0, B: 25.0}).misfit
    assert shown(Received(Approval("abc", 1, "sam", 0), 0, 500)).approved_by == "sam"
    assert shown(Received(Approval("abc", 0, "sam", 0), 0, 500)).approved_by is None


@pytest.mark.parametrize(
    ("windows", "refused"), [([], False), (["00:00-00:02"], False), (["00:00-00:03"], True), (["00:00-00:00"], True)]
)
def test_an_approval_that_would_end_within_a_quiet_window_is_in_vain(shown, packing, windows, refused):
    """It would be said to wait for the window's end, and never be carried out. Here 50 s are left, at 00:01:30."""
    why = in_vain(shown(at_ms=10_000), packing(forced_moves_only_utc=windows), 90_000)
    assert (why != "") is refused
    assert ("it ends in 1 min" in why) is refused


def test_one_that_has_ended_is_not_shown(shown):
    assert shown(at_ms=60_000) is not None
    assert shown(at_ms=60_001) is None
    assert shown(Received(TARGET, 2, 700)) is None
