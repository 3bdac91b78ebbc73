"""`${NAME}` and `KGS_SET_...`, and that no secret is ever shown."""

import pytest

CANARY = "canary-7f3a"
SASL = "security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: u"


def kafka(client):
    return f"kafka: {{bootstrap_servers: 'a:1', client: {{{client}}}}}"


def test_a_variable_may_be_part_of_a_text_and_stand_several_times(settings_of):
    assert settings_of({"A": "x", "B": "y"}, lake="lake: {root: '/${A}/${B}/${A}'}").lake.root == "/x/y/x"


def test_what_comes_from_a_variable_is_not_read_again(settings_of):
    settings = settings_of({"A": "${B}", "B": "no"}, spark="spark: {settings: {a: '${A}', b: '$${A}'}}")
    assert settings.spark.settings == {"a": "${B}", "b": "${A}"}


@pytest.mark.parametrize(
    ("environ", "answer"),
    [
        ({}, "is not set: set it"),
        ({"PW": ""}, "is not set: set it"),
        ({"PW": CANARY + "\n"}, "begins or ends with a blank or line end: take that away"),
        ({"PW": " " + CANARY}, "begins or ends with a blank or line end: take that away"),
    ],
)
def test_a_secret_that_is_missing_or_has_a_line_end(problems_of, environ, answer):
    assert problems_of(environ, kafka=kafka(f"{SASL}, sasl.password: '${{PW}}'")) == [
        f"kafka.client.sasl.password: environment variable PW {answer}"
    ]


def test_a_missing_variable_hides_no_other_problem_and_adds_none(problems_of):
    assert problems_of(group="group: '${NOPE}'", lake="lake: {root: ''}") == [
        "group: environment variable NOPE is not set: set it",
        "lake.root: '': write the path in full: not empty, no '~', no control characters",
    ]


def test_an_override_wins_over_the_file(settings_of):
    environ = {
        "KGS_SET_GROUP": "h",
        "KGS_SET_CONSUMER__BATCH_BYTES": "2000",
        "KGS_SET_KAFKA__BOOTSTRAP_SERVERS": "b:2",
        "KGS_SET_TOPICS": "[{topic: u}]",
        "OTHER": "x",
    }
    settings = settings_of(environ, group="group: '${NOT_SET}'")
    assert (settings.group, settings.consumer.batch_bytes, settings.kafka.bootstrap_servers) == ("h", 2000, "b:2")
    assert [rule.topic for rule in settings.topics] == ["u"]


def test_an_override_changes_one_place_of_two_that_an_alias_shares(settings_of):
    kafka_and_lake = {"kafka": "kafka: {bootstrap_servers: 'a:1', client: &x {}}", "spark": "spark: {settings: *x}"}
    settings = settings_of({"KGS_SET_SPARK__SETTINGS__A": "1"}, **kafka_and_lake)
    assert settings.spark.settings == {"a": 1}
    assert settings.kafka.client == {}


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("KGS_SET_CONSUMER__BATCH_BYTES", CANARY, "consumer.batch_bytes: the value of KGS_SET_CONSUMER__BATCH_BYTES: "
         "give a whole number from 1000 to 1000000000 (bytes)"),
        ("KGS_SET_TOPICS__0__START", "latest", "environment variable KGS_SET_TOPICS__0__START: 'topics' is not a "
         "section: set it as a whole"),
        ("KGS_SET_GROUP", f"[{CANARY}", "environment variable KGS_SET_GROUP: line 1: expected ',' or ']', but got "
         "'<stream end>'"),
        ("KGS_SET_CONSUMER__BACH_BYTES", "1", "consumer.bach_bytes: unknown key: did you mean 'batch_bytes'?"),
        (
            "KGS_SET_",
            "1",
            ": unknown key: the keys here are group, kafka, lake, topics, registry, catalog, "
            "consumer, spark, monitor, packing, "
            "membership, bill, fleet, kubernetes",
        ),
    ],
)  # fmt: skip
def test_overrides_that_cannot_be(problems_of, name, value, answer):
    assert problems_of({name: value}) == [answer]


@pytest.mark.parametrize(
    "sections",
    [
        {"kafka": kafka(f"{SASL}, sasl.password: [{CANARY}]")},
        {"kafka": kafka(f"sasl.password: {CANARY}")},
        {"kafka": kafka(f"{SASL}, sasl.password: {CANARY}, acks: {CANARY}")},
        {"kafka": kafka(f"sasl.jaas.config: {CANARY}")},
        {"kafka": f"kafka: {{bootstrap_servers: 'a:1', client: {CANARY}}}"},
        {"kafka": f"kafka: {{bootstrap_servers: 'u:{CANARY}@a:1'}}"},
        {"kafka": f"kafka: {{bootstrap_servers: 'a:1', password: {CANARY}}}"},
        {"lake": f"lake: {{root: /x, storage_options: {{aws_secret_access_key: [{CANARY}]}}}}"},
        {"lake": f"lake: {{root: /x, storage_options: {CANARY}}}"},
        {"lake": f"lake: {{root: 's3://key:{CANARY}@b/x'}}"},
        {"lake": f"lake: {{root: 'https://key:{CANARY}@b/x'}}"},
        {"spark": f"spark: {{settings: {{fs.s3a.access: [{CANARY}]}}}}"},
        {"spark": f"spark: {{settings: {CANARY}}}"},
        {"group": "group: 'a ${CANARY}'"},
        {"lake": "lake: {root: 'ftp://${CANARY}'}"},
        {"topics": "topics: [{topic: '/${CANARY}'}]"},
    ],
)
def test_no_message_shows_a_secret(problems_of, sections):
    found = problems_of({"CANARY": CANARY}, **sections)
    assert found
    assert CANARY not in "\n".join(found)


def test_settings_do_not_print_their_secrets(settings_of):
    settings = settings_of(
        kafka=kafka(f"{SASL}, sasl.password: {CANARY}"),
        lake=f"lake: {{root: /x, storage_options: {{aws_secret_access_key: {CANARY}}}}}",
        spark=f"spark: {{settings: {{fs.s3a.secret.key: {CANARY}}}}}",
    )
    assert CANARY not in f"{settings!r} {settings}"
