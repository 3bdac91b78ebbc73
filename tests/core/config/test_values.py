"""Values of the wrong type or size: field, value and allowed range in one line."""

from typing import Annotated

import pytest
from pydantic import TypeAdapter, ValidationError

from kgs_core.config import parse_settings
from kgs_core.config.rule.section import key_of
from kgs_core.errors import ConfigError
from kgs_core.packing import ALGORITHMS

SIZE = "give a whole number from 1000 to 1000000000 (bytes)"
TIME = "give a number from 0 to 86400 (seconds)"
CAPACITY = "give bytes/s, from 1 to 1000000000000, or null"
WRONG = [
    ('"10"', "'10'"),
    ("10s", "'10s'"),
    ("2.3MB/s", "'2.3MB/s'"),
    ("true", "true"),
    ("null", "null"),
    (".nan", "nan"),
    (".inf", "inf"),
    ("-.inf", "-inf"),
    ("-1", "-1"),
    (str(2**63), str(2**63)),
]


WRONG_CAPACITY = [*WRONG[:4], *WRONG[5:7], ("-1", "-1"), ("0", "0"), ("1.5MB", "'1.5MB'"), (str(10**13), str(10**13))]
WRONG_COUNT = [("0", "0"), ("10001", "10001"), ("1.5", "1.5"), ("true", "true"), ('"2"', "'2'")]


@pytest.mark.parametrize(
    ("key", "cure", "values"),
    [
        ("consumer.batch_bytes", SIZE, [*WRONG, ("1.5", "1.5"), ("0", "0"), ("16e6", "'16e6'")]),
        ("consumer.wait_time_s", TIME, WRONG),
        ("packing.packing_capacity_bytes_per_s", CAPACITY, WRONG_CAPACITY),
        ("packing.consumer_capacity_bytes_per_s", CAPACITY, WRONG_CAPACITY),
        ("packing.max_consumers", "give a whole number from 1 to 10000, or null", WRONG_COUNT),
        ("membership.suspect_after_s", "give a number from 1 to 3600 (seconds)", [(".inf", "inf")]),
        ("membership.strict_handover", "give true or false", [("'no'", "'no'")]),
        ("membership.start_attempts", "give a whole number from 1 to 100", [("0", "0")]),
        ("registry.url", "give http(s)://host:port", [("ftp://host", "'ftp://host'")]),
    ],
)
def test_a_value_that_cannot_be_is_shown_with_what_can(problems_of, key, cure, values):
    section, _, name = key.partition(".")
    for written, shown in values:
        found = problems_of(**{section: f"{section}: {{{name}: {written}}}"})
        assert found == [f"{key}: {shown}: {cure}"]


def test_a_number_too_long_to_write_out_is_cut(problems_of):
    (found,) = problems_of(consumer=f"consumer: {{batch_bytes: 0x{'f' * 9000}}}")
    assert found.startswith("consumer.batch_bytes: 0xffff")
    assert found.endswith(SIZE)
    assert len(found) < 200


@pytest.mark.parametrize(
    ("section", "name", "written", "kept"),
    [
        ("consumer", "batch_bytes", "1_000", 1000),
        ("consumer", "batch_bytes", "16000000", 16_000_000),
        *(("consumer", "wait_time_s", f"{time_s}, batch_timeout_s: 43200", time_s) for time_s in (0, 1, 1.5, 40_000)),
        ("packing", "packing_capacity_bytes_per_s", "1000000", 1_000_000),
        ("packing", "consumer_capacity_bytes_per_s", "1000000.5", 1_000_000.5),
    ],
)
def test_sizes_are_taken_and_times_and_capacities_may_be_whole_or_not(settings_of, section, name, written, kept):
    settings = settings_of(**{section: f"{section}: {{{name}: {written}}}"})
    assert getattr(getattr(settings, section), name) == kept


def test_unknown_keys_name_the_nearest_or_all(problems_of):
    topics = "topics: [{topic: t, zzz: {a: int}}]"
    found = problems_of(consumer="consumer: {bach_bytes: 1}", more="zzz: 1", topics=topics)
    assert found == [
        "topics[0].zzz: unknown key: the keys here are topic, pattern, not, table, format, schema, avro_schema, "
        "unknown_fields, key_format, key_schema, key_prefix, headers, topic_column, transform, transform_arrow, rows, "
        "evolve, on_error, start, partition_by, sort_by, "
        "description, comments, newest_rows, route, complete_hours, mask, keep",
        "consumer.bach_bytes: unknown key: did you mean 'batch_bytes'?",
        "zzz: unknown key: the keys here are group, kafka, lake, topics, registry, catalog, "
        "consumer, spark, monitor, packing, "
        "membership, bill, fleet, kubernetes",
    ]


def test_all_that_is_missing_in_one_message(problems_in):
    assert problems_in("consumer: {}\n") == [
        "group: missing: use 1 to 100 of a-z A-Z 0-9 . _ -",
        "kafka: missing: see `kgs example --all`",
        "lake: missing: see `kgs example --all`",
        "topics: missing: see `kgs example --all`",
    ]


def test_a_name_that_looks_like_a_number_wants_quotes(problems_of):
    assert problems_of(group="group: 123") == ["group: 123: give text, in quotes if it looks like something else"]


def test_a_refusal_is_a_usage_error_with_a_line_per_problem():
    with pytest.raises(ConfigError) as caught:
        parse_settings(b"consumer: {}", "kgs.yaml", {})
    assert caught.value.exit_code == 2
    assert str(caught.value).splitlines() == list(caught.value.problems)
    assert all(problem.startswith("kgs.yaml: ") for problem in caught.value.problems)


def test_problems_of_all_sections_come_together(problems_of):
    found = problems_of(
        group="group: a b",
        kafka="kafka: {bootstrap_servers: 'a', client: {acks: 1}}",
        lake="lake: {root: ''}",
        topics="topics: [{topic: a/b}, {topic: x, format: xml}]",
        consumer="consumer: {wait_time_s: -1}",
        spark="spark: 3",
    )
    assert [problem.split(": ")[0] for problem in found] == [
        "group", "kafka.bootstrap_servers", "kafka.client", "lake.root", "topics[0].topic", "topics[1].format",
        "consumer.wait_time_s", "spark",
    ]  # fmt: skip


def test_very_many_problems_are_counted_not_listed(problems_of):
    found = problems_of(topics="topics: [" + ", ".join(["{}"] * 80) + "]")
    assert len(found) == 51
    assert found[-1] == "30 more"


def test_keys_that_are_no_text(problems_of):
    assert problems_of(more="1: 2") == ["[1]: 1: keys are text: put it in quotes"]
    assert problems_of(spark="spark: {settings: {1: 2}}") == [
        "spark.settings[1]: (value not shown): give text, in quotes if it looks like something else"
    ]


def test_a_section_with_every_line_commented_out_is_its_defaults(settings_of):
    kafka = "kafka:\n  bootstrap_servers: a:1\n  client:\n"
    bare = settings_of(kafka=kafka, consumer="consumer:", spark="spark:\n  settings:\n")
    assert bare.consumer == settings_of().consumer
    assert bare.spark == settings_of().spark
    assert bare.kafka.client == {}


def test_a_wait_not_shorter_than_the_timeout_names_both(problems_of):
    assert problems_of(consumer="consumer: {wait_time_s: 5, batch_timeout_s: 5}") == [
        "consumer: wait_time_s (5) must be less than batch_timeout_s (5)"
    ]


@pytest.mark.parametrize(
    ("batch_bytes", "most"), [(16_000_000, 64_000_000), (1000, 4000), (20_000_000, 64_000_000), (9 * 10**7, 9 * 10**7)]
)
def test_how_far_batches_grow(settings_of, batch_bytes, most):
    assert settings_of(consumer=f"consumer: {{batch_bytes: {batch_bytes}}}").consumer.largest_batch_bytes == most


@pytest.mark.parametrize("window_s", [2, 3.5, 30, 3600])
def test_a_window_holds_readings_enough(settings_of, window_s):
    monitor = settings_of(monitor=f"monitor: {{window_s: {window_s}}}").monitor
    assert monitor.min_span_s < window_s
    assert 2 * monitor.interval_s <= window_s - monitor.min_span_s
    assert (monitor.min_span_s, monitor.interval_s) == (10, 1) or window_s != 30


@pytest.mark.parametrize("values", ["window_s: .nan", "window_s: 1"])
def test_a_monitor_that_cannot_work_is_refused(problems_of, values):
    (problem,) = problems_of(monitor=f"monitor: {{{values}}}")
    assert problem.startswith(f"monitor.{values.partition(':')[0]}")


@pytest.mark.parametrize("suspect_after_s", [1, 6, 30, 3600])
def test_one_late_heartbeat_makes_no_suspect(settings_of, suspect_after_s):
    membership = settings_of(membership=f"membership: {{suspect_after_s: {suspect_after_s}}}").membership
    assert 0 < 3 * membership.heartbeat_s <= suspect_after_s
    assert 0 < membership.start_backoff_s <= membership.max_measurement_age_s == suspect_after_s


def test_a_group_of_0_1_has_the_pace_that_it_had(settings_of):
    membership = settings_of().membership
    assert (membership.heartbeat_s, membership.start_backoff_s, membership.max_measurement_age_s) == (2, 5, 30)


@pytest.mark.parametrize("servers", ["a", "a:", "a:1,", "a:1, b:2", "user:pw@a:1", "'a:123456'", "''"])
def test_wrong_bootstrap_servers(problems_of, servers):
    (found,) = problems_of(kafka=f'kafka: {{bootstrap_servers: "{servers}"}}')
    assert found.endswith(": give host:port, or several with commas and no blanks between")
    assert "pw" not in found


def test_what_packing_compares_is_in_order(problems_of):
    capacities = "packing_capacity_bytes_per_s: 2000001, consumer_capacity_bytes_per_s: 2000000"
    assert problems_of(packing=f"packing: {{{capacities}, min_consumers: 3, max_consumers: 2}}") == [
        "packing: packing_capacity_bytes_per_s (2000001) must be at most consumer_capacity_bytes_per_s (2000000); "
        "min_consumers (3) must be at most max_consumers (2)"
    ]


def test_an_unknown_algorithm_gets_the_list_of_names(problems_of):
    *others, last = map(repr, ALGORITHMS)
    names = f"{', '.join(others)} or {last}"
    assert problems_of(packing="packing: {algorithm: MWF}") == [f"packing.algorithm: 'MWF': give one of {names}"]
    assert problems_of(packing="packing: {algorithm: 1}") == [f"packing.algorithm: 1: give one of {names}"]


def test_the_only_name_that_there_is_makes_a_sentence_too():
    with pytest.raises(ValidationError, match="give 'a', there is no other"):
        TypeAdapter(Annotated[str, key_of({"a": 1})]).validate_python("b")


def test_an_at_sign_in_a_name_is_shown_and_before_an_address_is_not():
    """There it may end a password."""
    text = "group: g\nkafka: {bootstrap_servers: 'user:s3cr3t@host'}\nlake: {root: l}\ntopics: [{topic: b@d topic}]\n"
    with pytest.raises(ConfigError) as refused:
        parse_settings(text.encode(), "kgs.yaml", {})
    assert "'b@d topic'" in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{resources: {requests: {cpu: 2}}}", "resources.requests.cpu"),
        ("{resources: {limits: {memory: 1 GB}}}", "resources.limits.memory"),
        ("{image: 'a b'}", "image"),
        ("{resources: {limit: {}}}", "resources"),
        ("{secrets: ['-a']}", "secrets"),
        ("{secrets: ['tls:run']}", "secrets"),
        ("{node_selector: {disk: '-'}}", "node_selector"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_at_start(problems_of, section, problem):
    (found,) = problems_of(more=f"kubernetes: {section}")
    assert found.startswith(f"kubernetes.{problem}")
