"""The job that redrives dead letters: what it passes on, what it records."""

from collections import Counter

from kgs_core.ingest.replay.redrive_result import RedriveResult
from kgs_dagster.jobs.redrive import redrive_job
from tests.dagster.groups import group
from tests.dagster.results import WHY, failure, output, refusing

CONFIG = {"ops": {"redrive_table": {"config": {"table": "bronze/orders", "code": ["empty"], "dry_run": True}}}}


def run(instance, work):
    job = redrive_job(group(), work)
    return job.execute_in_process(instance=instance, run_config=CONFIG, raise_on_error=False)


def test_it_redrives_what_its_configuration_says_and_records_the_result(instance):
    asked = []

    def work(settings, config):
        asked.append((config.table, config.code, config.partition, config.since, config.until, config.dry_run))
        return RedriveResult("bronze/orders", 10, 4, 4, 1, 0, 2, Counter(empty=3), {"empty": "orders:0 at 1: x"})

    found = output(run(instance, work))
    assert asked == [("bronze/orders", ["empty"], [], None, None, True)]
    assert (found["letters"], found["passed"], found["failed"]) == (10, 4, 3)
    assert found["reasons"] == [{"code": "empty", "letters": 3, "example": "orders:0 at 1: x"}]


def test_what_refuses_says_why(instance):
    assert failure(run(instance, refusing))[1] == WHY
