"""Telling consumers with other settings apart, without giving any setting away."""

import pytest

from kgs_core.config import parse_settings
from kgs_core.config.settings import config_hash

YAML = """
group: g
kafka: {{bootstrap_servers: "{at}:9092", client: {{{client}}}}}
lake: {{root: /lake{lake}}}
topics: [{{topic: t, format: json, schema: {{key: {key}, n: long}}}}]
{more}
"""


def hash_of(client="", lake="", key="string", more="", at="b"):
    text = YAML.format(client=client, lake=lake, key=key, more=more, at=at)
    return config_hash(parse_settings(text.encode(), "kgs.yaml", {}))


def options(values):
    return f", storage_options: {{{values}}}"


@pytest.mark.parametrize(
    "change",
    [
        {"key": "long"},
        {"lake": "2"},
        {"lake": ", storage_options: {AWS_REGION: eu}"},
        {"client": "fetch.min.bytes: 7"},
        {"more": "consumer: {batch_bytes: 5000000}"},
        {"more": "spark: {settings: {spark.driver.memory: 2g}}"},
        {"more": "membership: {suspect_after_s: 31}"},
    ],
)
def test_what_a_consumer_goes_by_makes_another_hash(change):
    assert hash_of(**change) != hash_of()


@pytest.mark.parametrize(
    "change",
    [
        {"more": "packing: {spare_consumers: 3}"},
        {"more": "monitor: {window_s: 60}"},
        {"more": "membership: {start_attempts: 9, suspect_after_s: 30}"},
        {"more": "consumer: {batch_bytes: 16000000}"},  # a default written out
        {"more": "catalog: {kind: unity, url: 'http://u', name: 'a.b.{table}'}"},
        # Of a process alone. Consumers of two zones have a rack each, else none could read from the near replica
        {"client": "client.rack: eu-1a"},
        {"client": "ssl.ca.location: /etc/a.pem, https.ca.location: /etc/a.pem"},
        {"client": "ssl.certificate.location: /a, ssl.key.location: /b, ssl.key.password: c"},
        {"client": "broker.address.family: v6"},
        {"at": "b.eu-1a"},
        {"lake": options("AWS_ENDPOINT_URL: 'http://eu-1a', aws_web_identity_token_file: /a")},
        {"more": "spark: {settings: {spark.local.dir: /fast, spark.driver.host: eu-1a}}"},
    ],
)
def test_what_it_does_not_go_by_makes_none(change):
    assert hash_of(**change) == hash_of()


def test_secrets_are_left_out_by_value_and_kept_by_name():
    one, two = ("security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.password: " + word for word in ("a", "b"))
    assert (
        hash_of(client=one)
        == hash_of(client=two)
        != hash_of(client="security.protocol: SASL_SSL, sasl.mechanism: PLAIN")
    )


def test_of_spark_what_changes_rows_counts_though_its_name_speaks_of_keys():
    def hashes(name):
        return [hash_of(more=f"spark: {{settings: {{{name}: {value}}}}}") for value in ("EXCEPTION", "LAST_WIN")]

    assert len({*hashes("spark.sql.mapKeyDedupPolicy")}) == 2
    for name in ("spark.hadoop.fs.s3a.secret.key", "spark.sql.catalog.main.token"):
        assert len({*hashes(name)}) == 1


def test_order_of_keys_is_irrelevant():
    client = ["fetch.min.bytes: 7", "fetch.max.bytes: 9000000"]
    assert hash_of(client=", ".join(client)) == hash_of(client=", ".join(reversed(client)))


@pytest.mark.parametrize("way", ["username: u, password: {}", "token: {}"])
def test_a_new_secret_of_the_registry_makes_no_other_hash(way):
    one, two = (hash_of(more=f"registry: {{url: 'http://r', {way.format(word)}}}") for word in ("a", "b"))
    assert one == two
    assert one != hash_of(more="registry: {url: 'http://r'}")
    assert one != hash_of(more=f"registry: {{url: 'http://other', {way.format('a')}}}")


def test_a_configuration_of_0_1_that_still_holds_keeps_its_hash():
    """Else a group that is taken over by a new version would replace all consumers for nothing."""
    assert hash_of() == "15918f43ee99ff2d"
