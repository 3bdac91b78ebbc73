"""The job that redrives dead letters: what it passes on, what it records."""

from collections import Counter

from kgs_core.errors import UnsafeError
from kgs_core.ingest.replay.redrive_result import RedriveResult
from kgs_dagster.jobs.redrive import redrive_job
from tests.dagster.groups import group

CONFIG = {"ops": {"redrive_table": {"config": {"table": "bronze/orders", "code": ["empty"], "dry_run": True}}}}


def run(instance, work):
    job = redrive_job(group(), work)
    return job.execute_in_process(instance=instance, run_config=CONFIG, raise_on_error=False)


def test_it_redrives_what_its_configuration_says_and_records_the_result(instance):
    asked = []

    def work(settings, config):
        asked.append((config.table, config.code, config.partition, config.since, config.until, config.dry_run))
        return RedriveResult("bronze/orders", 10, 4, 4, 1, 0, 2, Counter(empty=3), {"empty": "orders:0 at 1: x"})

    done = run(instance, work)
    assert asked == [("bronze/orders", ["empty"], [], None, None, True)]
    (output,) = [event for event in done.all_events if event.is_successful_output]
    values = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert (values["letters"], values["passed"], values["failed"]) == (10, 4, 3)
    assert [record.data for record in output.step_output_data.metadata["reasons"].records] == [
        {"code": "empty", "letters": 3, "example": "orders:0 at 1: x"}
    ]


def test_what_refuses_says_why(instance):
    def work(*_):
        raise UnsafeError("table bronze/orders: not there")

    (failure,) = [event for event in run(instance, work).all_events if event.is_step_failure]
    assert failure.step_failure_data.user_failure_data.description == "table bronze/orders: not there"
