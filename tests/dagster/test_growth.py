"""What the count of Dagster's database says."""

import dagster as dg
from dagster._core.test_utils import freeze_time
from dagster._time import get_current_timestamp

from bench.growth import growth, main
from kgs_dagster.jobs.prune import prune_runs_job
from tests.dagster.groups import group

TABLE = group().key("lake", "bronze", "orders")
START_S = 1_800_000_000.0


def grown(instance):
    return {each.kind: each for each in growth(instance, get_current_timestamp())}


def test_each_kind_is_counted_with_its_size_and_its_pace(local_instance):
    for hour in (0, 6, 12):
        with freeze_time(START_S + hour * 3600):
            local_instance.report_runless_asset_event(dg.AssetMaterialization(TABLE))
            found = grown(local_instance)
    looks = found["asset_materialization of g/lake/bronze/orders"]
    assert (looks.rows, looks.a_day) == (3, 6)
    assert 300 < looks.bytes_each < 3000


def test_only_the_last_day_counts_for_the_pace(local_instance):
    for day in (0, 1, 2, 3):
        with freeze_time(START_S + day * 86_400):
            local_instance.report_runless_asset_event(dg.AssetObservation(TABLE))
            found = grown(local_instance)
    assert found["asset_observation of g/lake/bronze/orders"].a_day == 2


def test_runs_are_counted_with_their_events(local_instance, monkeypatch, capsys):
    prune_runs_job(group()).execute_in_process(instance=local_instance)
    runs = grown(local_instance)["run of prune_runs_job"]
    assert (runs.rows, runs.bytes_each > 3000) == (1, True)
    monkeypatch.setenv("DAGSTER_HOME", local_instance.root_directory)
    main()
    assert "run of prune_runs_job" in capsys.readouterr().out
