"""What Dagster keeps does not grow for ever: days of a group's life, simulated, on a real instance on disk."""

import sqlite3
from contextlib import suppress
from itertools import count

import dagster as dg
import pytest
from dagster._core.test_utils import freeze_time
from dagster._time import get_current_timestamp

from kgs_core.reporting.usage import GroupUsage, Period
from kgs_core.simulation.bill import Bill, Price
from kgs_dagster import retention
from kgs_dagster.assets.bill import bill_asset
from kgs_dagster.checks.bad_records import changed_evaluations
from kgs_dagster.jobs import prune
from kgs_dagster.jobs.prune import prune_runs_job
from tests.dagster.groups import group
from tests.dagster.rebalancing import FOUR, Runs
from tests.dagster.results import refusing
from tests.failpoints import KilledError

DAY_S = 86_400
KEPT_DAYS = 2
CONFIG = {"ops": {"prune_runs": {"config": {
    "keep_days": KEPT_DAYS, "keep_failed_days": KEPT_DAYS, "keep_looks_days": KEPT_DAYS,
}}}}  # fmt: skip
START_S = 1_800_000_000.0
TABLE = group().key("lake", "bronze", "orders")


@pytest.fixture(autouse=True)
def in_its_own_tables(monkeypatch):
    monkeypatch.setenv("KGS_PRUNE_EVENTS", "1")


def pruned(instance, **how):
    """The run of the job, as of now."""
    job = prune_runs_job(group(), get_current_timestamp)
    return job.execute_in_process(instance=instance, raise_on_error=False, **how)


def kept(instance, runs):
    return [run_id for run_id in runs if instance.get_run_by_id(run_id)]


class Databases:
    """What an instance on disk keeps; databases of single runs are one."""

    def __init__(self, home):
        self.home = home

    def rows(self):
        """Rows of every table of every database."""
        found = {}
        for path in sorted(self.home.rglob("*.db")):
            name = "run" if path.name not in ("index.db", "runs.db", "schedules.db") else path.name
            with sqlite3.connect(path) as connection:
                for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
                    (number,) = connection.execute(f"select count(*) from {table}").fetchone()
                    found[name, table] = found.get((name, table), 0) + number
        return found

    def execute(self, statement):
        for path in self.home.rglob("*.db"):
            with sqlite3.connect(path) as connection, suppress(sqlite3.OperationalError):  # it has no such table
                connection.execute(statement)


@pytest.fixture
def databases(local_instance, tmp_path):
    return Databases(tmp_path)


def count_of(rows, table):
    return sum(number for (_, name), number in rows.items() if name == table)


class Life:
    """A group that changes, fails, is looked at: a little of everything that a day brings."""

    def __init__(self, instance):
        self.instance = instance
        self.runs = Runs(instance)
        self.runs.sim.start(1, 2)
        self.days = count()

    def day(self):
        today = next(self.days)
        with freeze_time(START_S + today * DAY_S):
            assert self.runs.run_at(FOUR).success
            with pytest.MonkeyPatch.context() as broken:
                broken.setattr(self.runs.sim, "controller", refusing)
                assert not self.runs.run_at(FOUR).success
            for bad in (1.0, None):
                self.looked_at({"orders": bad})
            assert pruned(self.instance, run_config=CONFIG).success

    def looked_at(self, judged):
        for event in (dg.AssetMaterialization(TABLE, tags={"k": "v"}), dg.AssetObservation(TABLE)):
            self.instance.report_runless_asset_event(event)
        for event in changed_evaluations(group(), self.instance, judged):
            self.instance.report_runless_asset_event(event)


@pytest.mark.slow(30)
def test_no_table_of_the_database_grows_for_ever(local_instance, databases):
    life = Life(local_instance)
    for _ in range(KEPT_DAYS + 3):
        life.day()
    before = databases.rows()
    assert count_of(before, "asset_check_executions") > 0
    for _ in range(2):
        life.day()
    assert databases.rows() == before


@pytest.mark.parametrize("point", ["run-half-deleted", "looks-half-deleted"])
def test_killed_in_the_middle_nothing_else_is_lost_and_the_next_run_goes_on(
    local_instance, tmp_path, monkeypatch, point
):
    def kill(name):
        if name == point:
            raise KilledError

    monkeypatch.setattr(retention, "_AT_ONCE", 2)
    others = dg.AssetKey(["others"])
    with freeze_time(START_S):
        for _ in range(4):
            local_instance.report_runless_asset_event(dg.AssetMaterialization(TABLE))
            local_instance.report_runless_asset_event(dg.AssetMaterialization(others))
        old = [pruned(local_instance).run_id for _ in range(3)]
    with freeze_time(START_S + 100 * DAY_S):
        with monkeypatch.context() as patched, suppress(KilledError):
            patched.setattr(retention, "failpoint", kill)
            pruned(local_instance)
        assert len(kept(local_instance, old)) == (3 if point == "run-half-deleted" else 0), (
            "a run's own entry goes last"
        )
        assert len(local_instance.fetch_materializations(others, 9).records) == 4
        with dg.DagsterInstance.from_config(str(tmp_path / "dagster_home")) as later:  # as another process has it
            assert pruned(later).success
    assert kept(local_instance, old) == []
    assert len(local_instance.fetch_materializations(TABLE, 9).records) == 1, "how the table is"
    assert len(local_instance.fetch_materializations(others, 9).records) == 4


def test_the_last_good_run_of_a_change_stays_however_old(runs):
    """Its events are what the page of its assets shows: after two calm weeks they would be as if never made."""
    job = prune_runs_job(runs.group, lambda: get_current_timestamp() + 100 * DAY_S)
    for _ in range(2):
        assert runs.run_at(FOUR).success
    assert job.execute_in_process(instance=runs.instance).success
    (left,) = [run for run in runs.instance.get_runs() if run.job_name == "rebalance_job"]
    assert runs.instance.get_latest_materialization_event(runs.group.key("handover")).run_id == left.run_id


def test_runs_that_people_start_from_an_assets_page_go_but_for_the_newest_of_each_day(local_instance):
    """They have no tag of the group; a day whose run is gone would count as never made."""
    ours, theirs = group(), dg.AssetKey(["others", "thing"])

    @dg.asset(key=theirs)
    def thing():
        pass

    def make(*_):
        return Bill("g", Period(0, 86_400_000), True, 100.0, Price(0.5), usage=GroupUsage())

    defs = dg.Definitions(assets=[bill_asset(ours, make), thing])
    job = defs.resolve_implicit_global_asset_job_def()

    def start(key, day=None):
        done = job.execute_in_process(instance=local_instance, partition_key=day, asset_selection=[key])
        return done.run_id

    with freeze_time(START_S):
        runs = [start(ours.key("bill"), day) for day in ("2026-03-04", "2026-03-04", "2026-03-05")]
        others = [start(theirs), start(theirs)]
    with freeze_time(START_S + 100 * DAY_S):
        assert pruned(local_instance).success
    assert kept(local_instance, [*runs, *others]) == [*runs[1:], *others]


@pytest.mark.parametrize(
    ("environ", "version", "left"),
    [("", dg.__version__, 3), ("1", dg.__version__, 1), ("1", "1.14.0", 3), ("1", "1.13.26", 3)],
)
def test_its_own_tables_are_touched_where_asked_for_and_known(local_instance, monkeypatch, environ, version, left):
    """Old runs go by Dagster's own call in any case."""
    monkeypatch.setenv("KGS_PRUNE_EVENTS", environ)
    why = retention.unknown_tables(version)
    monkeypatch.setattr(prune, "unknown_tables", lambda: why)
    with freeze_time(START_S):
        old = pruned(local_instance).run_id
        for _ in range(3):
            local_instance.report_runless_asset_event(dg.AssetMaterialization(TABLE))
    with freeze_time(START_S + 100 * DAY_S):
        done = pruned(local_instance)
    assert done.success
    assert kept(local_instance, [old]) == []
    assert len(local_instance.fetch_materializations(TABLE, 9).records) == left
    said = [entry.user_message for entry in local_instance.all_logs(done.run_id) if version in entry.user_message]
    assert len(said) == (version != dg.__version__)


def test_a_wrong_wish_is_named(monkeypatch, local_instance):
    monkeypatch.setenv("KGS_PRUNE_EVENTS", "yes")
    done = pruned(local_instance)
    assert "KGS_PRUNE_EVENTS: 'yes': write 1" in str(done.get_step_failure_events())


def test_a_run_that_cannot_be_deleted_keeps_no_other_one(local_instance, monkeypatch):
    with freeze_time(START_S):
        old = [pruned(local_instance).run_id for _ in range(3)]
    real = prune.delete_run

    def refuse(instance, run_id):
        if run_id == old[2]:
            raise PermissionError("its log is somebody else's")
        real(instance, run_id)

    monkeypatch.setattr(prune, "delete_run", refuse)
    with freeze_time(START_S + 100 * DAY_S):
        assert not pruned(local_instance).success, "somebody should know of it"
    assert kept(local_instance, old) == [old[2]]


def test_an_event_that_cannot_be_read_keeps_no_other_one(local_instance, databases):
    with freeze_time(START_S):
        for bad in (1.0, None):
            for event in changed_evaluations(group(), local_instance, {"orders": bad}):
                local_instance.report_runless_asset_event(event)

    databases.execute("update event_logs set event = '{}' where id = (select min(id) from event_logs)")
    before = count_of(databases.rows(), "event_logs")
    retention.delete_looks(local_instance, [TABLE], retention.days_ago(0, START_S + DAY_S))
    assert 0 < count_of(databases.rows(), "event_logs") < before
