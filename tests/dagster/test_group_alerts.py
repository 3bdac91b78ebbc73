"""Checks whether a group is well: by the load sensor's ticks, and by hand."""

import dagster as dg
import pytest

from kgs_core.model import TopicPartition
from kgs_core.reporting.group_alerts import GroupAlert
from kgs_dagster.checks.group_alerts import LastingAlerts, group_alert_key
from tests.dagster.groups import group as group_of
from tests.dagster.rebalancing import FOUR
from tests.dagster.results import checks

WELL = {alert.value: True for alert in GroupAlert}


@pytest.fixture
def ticked(watched):
    """A tick, with what it reports kept; gives check -> the evaluation."""
    return lambda: {each.check_name: each for each in watched.keep(watched.tick()) if each.check_name in WELL}


def passed(found):
    return {name: each.passed for name, each in found.items()}


def test_a_group_that_is_well_says_so_once_and_again_when_an_asset_is_materialized(watched, ticked, instance):
    """The UI hides a result that is older than the asset."""

    @dg.asset(key=watched.group.key("handover"))
    def by_a_run(): ...

    assert passed({**ticked(), **ticked()}) == WELL
    assert [ticked() for _ in range(3)] == [{}, {}, {}]
    dg.materialize([by_a_run], instance=instance)
    assert passed(ticked()) == {GroupAlert.ALL_READ.value: True, GroupAlert.ALL_HEARD.value: True}
    assert ticked() == {}


def failures(ticked):
    return [each for _ in range(12) for each in ticked().values() if not each.passed]


def test_a_partition_that_is_too_hot_is_reported_when_it_lasts_and_when_it_is_over(watched, ticked):
    ticked()
    for load in ({**FOUR, "a": 500}, FOUR):
        watched.load = load
        assert passed(ticked()).get(GroupAlert.NONE_HOT, True), "over soon: no alert"
    watched.load = {**FOUR, "a": 500}
    (hot,) = failures(ticked)
    assert (hot.check_name, hot.severity) == (GroupAlert.NONE_HOT, dg.AssetCheckSeverity.WARN)
    assert hot.description == "- a:0: 500 bytes/s, and a consumer reads 120"
    assert hot.asset_key == watched.group.key("write_speeds")
    watched.load = FOUR
    assert passed(ticked()) == {GroupAlert.NONE_HOT.value: True}


def test_what_stands_still_is_an_error_with_its_reason(watched, ticked):
    ticked()
    watched.sim.fleet.living()[0].stopped = {TopicPartition("a", 0): "no right"}
    (stopped,) = failures(ticked)
    assert (stopped.check_name, stopped.severity) == (GroupAlert.ALL_READ, dg.AssetCheckSeverity.ERROR)
    assert stopped.description == "- a:0 is stopped: no right"


def test_what_is_not_known_changes_nothing(instance):
    """A tick that ends early tells nothing of who is silent: neither that all is well nor that it has lasted."""
    now, silent = [0.0], {GroupAlert.ALL_HEARD: ("consumer 1 is silent",)}
    lasting = LastingAlerts(group_of(), lambda: now[0])
    seen = []
    for now[0], alerts in ((0, silent), (30, {GroupAlert.ALL_HEARD: None}), (59, silent), (60, silent), (61, silent)):
        found = lasting.changed(instance, alerts)
        seen += [(now[0], each.passed) for each in found]
        for each in found:
            instance.report_runless_asset_event(each)
    assert seen == [(60, False)]
    assert [each.passed for each in lasting.changed(instance, {GroupAlert.ALL_HEARD: ()})] == [True]


def test_alerts_are_checked_by_hand_too(runs):
    keys = {group_alert_key(runs.group, alert) for alert in GroupAlert}
    for load, expected in ((FOUR, WELL), ({**FOUR, "a": 500}, {**WELL, GroupAlert.NONE_HOT.value: False})):
        runs.sim.publish(**load)
        assert {name: passed for (_, name), passed in checks(runs.check(*keys)).items()} == expected
