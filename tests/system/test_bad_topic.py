"""A topic whose schema does not fit, beside one whose does: what is said of it, and what is not measured on it."""

import json
from contextlib import closing

import pytest

from kgs_core.cli.lake.audit import lines
from kgs_core.group.protocol import Report
from kgs_core.lake.audit.audit import audit_lake
from kgs_core.model import TopicPartition
from tests.system.director import Director
from tests.system.pipeline import JSON_FIELDS, Pipeline, json_values, produce

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BAD, GOOD = "bad", "good"


@pytest.fixture
def pipeline(kafka, topic_prefix, tmp_path):
    rules = [
        {"topic": f"{topic_prefix}{BAD}", "format": "json", "schema": {"i": "boolean"}},
        {"topic": f"{topic_prefix}{GOOD}", "format": "json", "schema": JSON_FIELDS},
    ]
    pipeline = Pipeline(tmp_path, kafka.bootstrap_servers, rules)
    for name in (BAD, GOOD):
        pipeline.admin.create_topic(f"{topic_prefix}{name}", 1)
        produce(kafka.bootstrap_servers, f"{topic_prefix}{name}", json_values(0, 3000))
    return pipeline


def test_a_topic_that_does_not_fit_is_reported_as_bad_and_the_other_one_is_not(pipeline, topic_prefix):
    """With a real consumer: how the share comes from the records to report, log and status is what is tried."""
    bad, good = f"{topic_prefix}{BAD}", f"{topic_prefix}{GOOD}"
    director = Director(pipeline)
    with closing(director), director.consumer(1) as process:
        one = director.joined(process)
        director.give(one, frozenset({TopicPartition(bad, 0), TopicPartition(good, 0)}))

        def told() -> Report | None:
            report = director.last(one)
            return report if report is not None and report.bad_shares else None

        assert director.wait(told, "it is reported").bad_shares == {bad: 1.0}
        pipeline.wait_caught_up([bad, good])
        shown = json.loads(pipeline.kgs("status", "--json").stdout)
        assert shown["bad_shares"] == {bad: 1.0}
        assert f"topic {bad}: all of its newest records are dead letters" in pipeline.kgs("status").stdout
        assert process.log.read_text().count("too many bad records") == 1
        assert shown["consumers"][0]["stopped"] == {}
    pipeline.assert_exact(good, raw=False)
    audit = audit_lake(pipeline.settings)
    assert audit.ok
    assert f"  WARNING: 3,000 dead letters of {bad} and no row: fix its rule or the producer" in [*lines(audit)]


def test_no_capacity_is_measured_on_dead_letters(pipeline, topic_prefix):
    """As a user calls it: what must not be printed are settings that follow from the speed of dead letters."""
    ended = pipeline.kgs("capacity", "--seconds", "5")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines()[-1] == (
        f"error: capacity: topic {topic_prefix}{BAD}: all of its records cannot be parsed, and how fast dead "
        "letters are says nothing of rows: fix its rule, or leave the topic out for this test"
    )
    assert [path.name for path in pipeline.lake.iterdir()] == []
