"""`kgs init`, and commands that look at topics without a whole kgs.yaml."""

import pytest
from click.testing import CliRunner

from kgs_core.cli.main import cli
from kgs_core.config.file import load_settings
from kgs_core.ingest.fetch import topic_sample
from kgs_core.ingest.fetch.topic_sample import TopicSample
from kgs_core.kafka import admin
from tests.configuration import text_of

HELD = {
    "orders": [b'{"id": 1, "at": "2026-01-31"}', b'{"id": 2, "no": null}', b"odd"],
    "log": [b"a line", "ä".encode()],
    "avro": [b"\x00\x00\x00\x00\x07\xff"],
    "bytes": [b"\xff\xfe", b"a"],
    "mostly": [b"x", b"y", b'{"id": 1}'],
    "new": [],
    "tombstones": [None],
}


class Brokers:
    """`KafkaAdmin` whose cluster has these topics."""

    def __init__(self, client, _timeout_s=0.0):
        assert client["bootstrap.servers"] == "b:9092"

    def list_topics(self):
        return ["__consumer_offsets", "kgs.other.monitor.writeSpeed", *HELD]

    def describe(self, topics):
        return {topic: topic_sample.TopicSample([], [], 3, is_whole=True) for topic in topics}


@pytest.fixture
def kgs(here, monkeypatch):
    """Runs a command in an empty folder, beside brokers that hold `HELD`."""
    monkeypatch.setattr(admin, "KafkaAdmin", Brokers)
    held = lambda _, topic, *__: TopicSample(HELD[topic], [], 2, is_whole=True)  # noqa: E731
    monkeypatch.setattr(topic_sample, "sample_topic", held)
    return lambda *words: CliRunner().invoke(cli, [*words])


def test_what_topics_hold_becomes_their_rules(kgs, tmp_path):
    done = kgs("init", "--bootstrap-servers", "b:9092", "--group", "shop", "--lake", "s3://bucket/lake")
    assert done.exit_code == 0, done.output
    assert "kgs control" in done.stdout, "what to run next"
    found = load_settings(tmp_path / "kgs.yaml", {})
    assert (found.group, found.kafka.bootstrap_servers, found.lake.root) == ("shop", "b:9092", "s3://bucket/lake")
    assert {rule.topic: rule.format for rule in found.topics} == {
        "orders": "json", "log": "string", "avro": "raw", "bytes": "raw", "mostly": "string", "new": "raw",
        "tombstones": "raw",
    }  # fmt: skip
    (orders,) = (rule for rule in found.topics if rule.topic == "orders")
    assert orders.fields == {"id": "long", "at": "date"}
    text = (tmp_path / "kgs.yaml").read_text()
    for said in ("2 of 3 records would be rows", "no: null in all 1", "look like a registry's", "no records yet"):
        assert said in text


def test_only_the_topics_that_are_named_and_never_over_a_file(kgs, tmp_path):
    assert kgs("init", "log", "--bootstrap-servers", "b:9092").exit_code == 0
    before = (tmp_path / "kgs.yaml").read_text()
    found = load_settings(tmp_path / "kgs.yaml", {})
    assert ([rule.topic for rule in found.topics], found.lake.root) == (["log"], str(tmp_path / "lake"))
    again = kgs("init", "orders", "--bootstrap-servers", "b:9092")
    assert (again.exit_code, (tmp_path / "kgs.yaml").read_text()) == (2, before)
    assert "kgs.yaml: exists already" in again.stderr
    assert kgs("init", "orders", "--bootstrap-servers", "b:9092", "--config", "other.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--group", "a b"), "group: 'a b': use 1 to 100"),
        (("--lake", "ftp://b"), "lake.root: 'ftp://b': this scheme"),
        (("--config", "no/kgs.yaml"), "no/kgs.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_written_is_said_and_nothing_is_left(kgs, tmp_path, words, said):
    done = kgs("init", "log", "--bootstrap-servers", "b:9092", *words)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


UNFINISHED = text_of(kafka={"bootstrap_servers": "b:9092"}, topics=[{"topic": "orders", "format": "json"}])


@pytest.mark.parametrize("words", [("topics", "list"), ("schema", "topic", "orders")], ids=["list", "schema"])
def test_topics_are_looked_at_without_a_file_and_with_unfinished_rules(kgs, tmp_path, words):
    without = kgs(*words)
    assert without.exit_code == 2
    assert "kgs.yaml: no such file: give --bootstrap-servers" in without.stderr
    by_option = kgs(*words, "--bootstrap-servers", "b:9092")
    assert by_option.exit_code == 0, by_option.output
    (tmp_path / "kgs.yaml").write_text(UNFINISHED)
    assert kgs(*words).stdout == by_option.stdout
    (tmp_path / "kgs.yaml").write_text(UNFINISHED.replace("group: g", "group: a b"))
    broken = kgs(*words)
    assert broken.exit_code == 2
    assert "group: 'a b'" in broken.stderr


def test_a_json_rule_without_columns_says_who_proposes_them(kgs, tmp_path):
    (tmp_path / "kgs.yaml").write_text(UNFINISHED)
    assert "`kgs schema topic TOPIC` proposes one" in kgs("plan").stderr


def test_texts_are_proposed_as_such(kgs):
    assert "format: string\n" in kgs("schema", "topic", "log", "--bootstrap-servers", "b:9092").stdout


def test_the_smallest_example_is_six_lines_and_loads(kgs, tmp_path):
    text = kgs("example").stdout
    assert len(text.splitlines()) == 6
    (tmp_path / "kgs.yaml").write_text(text)
    assert load_settings(tmp_path / "kgs.yaml", {}).topics[0].format == "string"
    assert len(kgs("example", "--all").stdout) > 10 * len(text)
    assert kgs("example", "--all", "rules.yaml").exit_code == 2
    assert "groups:" in kgs("example", "rules.yaml").stdout
    assert '"panels"' in kgs("example", "dashboard").stdout
