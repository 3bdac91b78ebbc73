"""The check of a table whose topic has too many bad records: by the load sensor's ticks, and by hand."""

import dagster as dg

from kgs_dagster.assets.lake import lake_layout
from kgs_dagster.checks.bad_records import BAD_RECORDS, changed_evaluations
from tests.dagster.groups import group
from tests.dagster.rebalancing import GROWN
from tests.dagster.results import evaluations


def told(events):
    """What a tick says of the tables' checks: asset -> passed, severity."""
    return {each.asset_key.path[-1]: (each.passed, each.severity.value) for each in events}


def test_topics_with_too_many_bad_records_are_reported_once_and_checked(watched):
    """As often as that changes, not with every tick."""
    fine, ours = (True, "WARN"), {process.consumer: process for process in watched.sim.fleet.living()}
    watched.keep(watched.evaluate())
    ours[1].bad_shares = {"a": 0.75, "b": 0.6}  # topic a has a rule of its own
    result = watched.evaluate()
    assert "topic a: 75 % of its newest records are dead letters" in result.skip_message
    assert told(watched.keep(result)) == {"a": (False, "WARN"), "any": (False, "WARN")}
    for bad, expected in (({"a": 1.0}, {"a": (False, "ERROR"), "any": fine}), ({"a": 1.0}, {}), ({}, {"a": fine})):
        ours[1].bad_shares = bad
        assert told(watched.keep(watched.evaluate())) == expected


def test_what_nobody_reads_is_neither_good_nor_bad(watched):
    """A consumer that falls silent with a bad topic does not mend it by that."""
    bad = next(process for process in watched.sim.fleet.living() if process.consumer == 1)
    bad.bad_shares = {"a": 1.0}
    assert told(watched.evaluate().asset_events)["a"] == (False, "ERROR")
    bad.is_frozen = True
    watched.sim.go_by(60)
    assert "a" not in told(watched.evaluate().asset_events)


def test_checks_that_cannot_be_read_keep_nobody_from_being_started(watched, monkeypatch):
    def locked(self, key):
        raise OSError("database is locked")

    monkeypatch.setattr(dg.DagsterInstance, "get_latest_asset_check_evaluation_record", locked)
    watched.load = GROWN
    assert [each.run_key for each in watched.evaluate().run_requests][:1] == ["g/3/1"]


def test_a_check_by_hand_that_fails_is_followed_by_the_sensors_result(instance):
    """A tick failed by it, and with it every start of a consumer."""
    table = lake_layout(group())[0].table

    @dg.asset_check(asset=table, name=BAD_RECORDS)
    def failing():
        raise OSError

    job = dg.Definitions(asset_checks=[failing]).resolve_implicit_global_asset_job_def()
    assert not job.execute_in_process(instance=instance, raise_on_error=False).success
    assert [each.passed for each in changed_evaluations(group(), instance, {"orders": None})] == [True]


def test_bad_records_are_checked_by_hand_too(runs):
    """Two consumers read the four topics of one rule; of another rule's topic nobody is heard."""
    keys = [dg.AssetCheckKey(asset.table, BAD_RECORDS) for asset in lake_layout(runs.group)]

    def look():
        return {asset: each for (asset, _), each in evaluations(runs.check(*keys)).items()}

    found = look()
    assert {name: each.passed for name, each in found.items()} == {"any": True, "orders": False}
    assert "not known" in found["orders"].description
    runs.sim.fleet.living()[0].bad_shares = {"a": 1.0}
    runs.sim.go_by(5)
    found = look()["any"]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.description == "- a: all of its newest records are dead letters"
