"""The catalogue in Dagster: an asset below all tables, a job by the clock, and what could not be registered."""

import dagster as dg

from kgs_core.catalog.catalog import Registration
from kgs_core.catalog.registration import TableRegistration
from kgs_dagster.assets.catalog import catalog_assets
from kgs_dagster.assets.lake import lake_assets
from kgs_dagster.automation import CATALOG_CRON, scheduled_jobs
from tests.dagster.groups import group
from tests.dagster.results import WHY, checks, evaluations, failure, figures, recorded, refusing

CATALOG = "{kind: unity, url: 'http://unity', name: 'main.{group}.{table}', token: s3cret}"
DONE = TableRegistration("bronze/orders", "main.g.bronze_orders", Registration.CREATED)
AWAY = TableRegistration("other", "main.g.other", problem="catalogue http://unity does not answer")


def run(instance, work):
    ours = group(catalog=CATALOG)
    jobs = [scheduled_jobs(ours)[CATALOG_CRON]]
    defs = dg.Definitions(assets=[*lake_assets(ours), *catalog_assets(ours, work)], jobs=jobs)
    return defs.resolve_job_def("catalog_job").execute_in_process(instance=instance, raise_on_error=False)


def counts(found):
    return found["registered"], found["not_registered"]


def test_it_is_an_asset_below_all_tables_that_shows_no_secret(instance):
    ours = group(catalog=CATALOG)
    (assets,) = catalog_assets(ours)
    (spec,) = assets.specs
    assert spec.kinds == {"unitycatalog"}
    assert {dep.asset_key for dep in spec.deps} == {spec.key for spec in lake_assets(ours) if "delta" in spec.kinds}
    assert "s3cret" not in repr(spec)
    done = run(instance, lambda _: [DONE])
    assert counts(recorded(done)["catalog"]) == (1, 0)
    assert checks(done) == {("catalog", "registered"): True}


def test_what_is_not_registered_fails_the_run_and_the_check_of_the_asset(instance):
    done = run(instance, lambda _: [DONE, AWAY])
    assert failure(done)[1] == f"table other: {AWAY.problem}"
    seen = evaluations(done)["catalog", "registered"]
    assert (seen.passed, counts(figures(seen))) == (False, (1, 1))
    assert seen.description == f"1 tables registered, 1 refused\ntable other: {AWAY.problem}"
    assert recorded(done) == {}
    assert failure(run(instance, refusing))[1] == WHY


def test_without_the_section_there_is_neither_asset_nor_job():
    assert catalog_assets(group()) == []
    assert CATALOG_CRON not in scheduled_jobs(group())
