"""Where transforms come from in a real consumer: the driver and both kinds of Spark's Python workers.

Without Spark it would not do: its workers are started by the JVM, in the working directory, with a path of their own.
"""

from pathlib import Path

import pytest

from kgs_core.embedded_kafka.cluster import EmbeddedKafka
from tests.system.pipeline import JSON_FIELDS, Pipeline, json_values, produce

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]
JSON_RULE = {"format": "json", "schema": JSON_FIELDS}
RULES = [
    {"topic": "folder.arrow", **JSON_RULE, "transform_arrow": "hooks:arrow_double"},
    {"topic": "folder.spark", **JSON_RULE, "transform": "hooks:spark_double"},
]
HOSTILE = "open(__file__ + '.was_run', 'w').close()\nraise ImportError('from the working directory')\n"


def test_transforms_come_from_the_folder_of_the_configuration_and_nothing_from_the_working_directory(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cwd, home = tmp_path / "cwd", tmp_path / "home"
    cwd.mkdir()
    home.mkdir()
    for name in ("yaml", "hooks", "pandas", "confluent_kafka"):
        (cwd / f"{name}.py").write_text(HOSTILE)
    monkeypatch.chdir(cwd)
    pipeline = Pipeline(home, kafka.bootstrap_servers, RULES)
    topics = [str(rule["topic"]) for rule in RULES]
    for topic in topics:
        pipeline.admin.create_topic(topic, 2)
        produce(pipeline.bootstrap, topic, json_values(0, 20))
    with pipeline.consumer() as consumer:
        pipeline.wait_caught_up(topics, 120)
        consumer.terminate()
    for topic in topics:
        assert {(row["i"], row["twice"]) for row in pipeline.rows(topic)} == {(i, 2 * i) for i in range(20)}
    assert list(cwd.glob("*.was_run")) == []
