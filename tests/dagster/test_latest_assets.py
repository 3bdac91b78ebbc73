"""Derived tables in Dagster: assets of the rules that have them, downstream of their tables."""

import dagster as dg

from kgs_core.lake.derived.latest_by_key import Materialization
from kgs_dagster.assets.lake import lake_assets
from kgs_dagster.assets.latest import latest_assets
from kgs_dagster.jobs.lake import latest_by_key_job
from kgs_dagster.jobs.prune import _seen
from tests.dagster.groups import group
from tests.dagster.results import WHY, failure, recorded, refusing

TOPICS = "[{topic: orders, table: bronze/orders, newest_rows: {table: gold/orders}}, {topic: other}]"


def run(instance, work):
    ours = group(topics=TOPICS)
    jobs = [latest_by_key_job(ours)]
    defs = dg.Definitions(assets=[*lake_assets(ours), *latest_assets(ours, work)], jobs=jobs)
    job = defs.resolve_job_def("latest_by_key_job")
    return job.execute_in_process(instance=instance, raise_on_error=False)


def test_a_derived_table_is_an_asset_below_its_table(instance):
    ours = group(topics=TOPICS)
    (assets,) = latest_assets(ours)
    (spec,) = assets.specs
    assert spec.key == ours.key("lake", "gold", "orders")
    assert [dep.asset_key for dep in spec.deps] == [ours.key("lake", "bronze", "orders")]
    found = recorded(run(instance, lambda _, rule: [Materialization("gold/orders", 7, 10, 2, 1)]))["orders"]
    assert (found["new_rows"], found["tombstones"]) == (10, 2)
    assert spec.key in _seen(ours)  # what the sensor records of it is cleaned up


def test_a_history_is_an_asset_of_its_own(instance, monkeypatch):
    monkeypatch.setattr(f"{__name__}.TOPICS", TOPICS.replace("gold/orders}", "gold/orders, history: gold/all}"))
    (assets,) = latest_assets(group(topics=TOPICS))
    assert [spec.key.path[-1] for spec in assets.specs] == ["orders", "all"]
    assert all(dep.asset_key.path[-1] == "orders" for spec in assets.specs for dep in spec.deps)
    work = [Materialization("gold/orders", 7, 10), Materialization("gold/all", 7, 12, is_history=True)]
    found = recorded(run(instance, lambda *_: work))
    assert (found["orders"]["new_rows"], found["all"]["new_rows"]) == (10, 12)


def test_what_refuses_says_why(instance):
    assert failure(run(instance, refusing))[1] == WHY


def test_without_such_rules_there_is_neither_asset_nor_job():
    assert latest_assets(group()) == []
    assert latest_by_key_job(group()) is None
